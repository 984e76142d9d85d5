package store

import (
	"context"
	"database/sql"
	"fmt"
)

// logTrigger adds rows to log_queue in the transaction of a write, whichever statement that is. Databases keep their triggers, so one
// with another action or condition needs another name.
type logTrigger struct {
	name string
	// on is the operation and the table, when an optional condition, and action the statement.
	on, table, when, action string
}

const (
	queueEvent = `INSERT INTO log_queue (at, type, id, eventid) VALUES (NEW.updatedat,
		CASE WHEN NEW.workloadinstanceid IS NOT NULL THEN 'WorkloadInstance' WHEN NEW.helmworkloadinstanceid IS NOT NULL THEN 'HelmWorkloadInstance' ELSE '' END,
		COALESCE(NEW.workloadinstanceid, NEW.helmworkloadinstanceid, 0), NEW.id)`

	// The start of a status is reported, and may be old when the silence of the cluster ends.
	queueStatus = `INSERT INTO log_queue (at, type, id, changedat, status, previous, reason, cause) VALUES (NEW.changedat, NEW.type, NEW.id,
		CASE WHEN OLD.status <> NEW.status AND NOT OLD.silent AND NOT NEW.silent AND NEW.since > 0 THEN NEW.since ELSE NEW.changedat END,
		NEW.status, OLD.status,
		CASE WHEN NEW.silent THEN 'AgentOffline' ELSE NEW.reason END,
		CASE WHEN NEW.silent THEN 'the agent does not report' ELSE NEW.cause END)`
)

var logTriggers = []logTrigger{
	{"log_event_added", "INSERT", "workload_events", "TRUE", queueEvent},
	{"log_event_updated", "UPDATE OF updatedat", "workload_events", "TRUE", queueEvent},
	{"log_status_changed", "UPDATE OF status, reason", "workloads", "OLD.status <> NEW.status OR OLD.reason <> NEW.reason", queueStatus},
}

// setLogQueue creates the triggers that fill log_queue, or drops them and empties it. Existing triggers stay, because to create one locks
// its table.
func (d dialect) setLogQueue(ctx context.Context, db *sql.DB, enabled bool) error {
	emptied := enabled
	for _, trigger := range logTriggers {
		var n int
		if err := db.QueryRowContext(ctx, d.rebind(d.triggerCount()), trigger.name).Scan(&n); err != nil {
			return fmt.Errorf("look for trigger %s: %w", trigger.name, err)
		}
		if (n > 0) == enabled {
			continue
		}
		statements := trigger.create(d)
		if !enabled {
			statements = trigger.drop(d)
			if !emptied {
				statements = append(statements, "DELETE FROM log_queue")
				emptied = true
			}
		}
		for _, statement := range statements {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("set trigger %s: %w", trigger.name, err)
			}
		}
	}
	return nil
}

// triggerCount is a query of the number of triggers with a name.
func (d dialect) triggerCount() string {
	if d == sqliteDialect {
		return "SELECT COUNT(*) FROM sqlite_master WHERE type = 'trigger' AND name = ?"
	}
	return "SELECT COUNT(*) FROM pg_trigger WHERE tgrelid IN ('workload_events'::regclass, 'workloads'::regclass) AND tgname = ?"
}

func (t logTrigger) create(d dialect) []string {
	head := t.name + " AFTER " + t.on + " ON " + t.table + " FOR EACH ROW WHEN (" + t.when + ") "
	if d == sqliteDialect { // another process may open the file too
		return []string{"CREATE TRIGGER IF NOT EXISTS " + head + "BEGIN " + t.action + "; END"}
	}
	return []string{
		"CREATE OR REPLACE FUNCTION " + t.name + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + t.action + "; RETURN NULL; END $$",
		"CREATE TRIGGER " + head + "EXECUTE FUNCTION " + t.name + "()",
	}
}

func (t logTrigger) drop(d dialect) []string {
	if d == sqliteDialect {
		return []string{"DROP TRIGGER IF EXISTS " + t.name}
	}
	return []string{"DROP TRIGGER " + t.name + " ON " + t.table, "DROP FUNCTION " + t.name + "()"}
}
