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

// The texts of a status change in log_queue have at most these numbers of characters.
const (
	maxLoggedReason = maxReason
	maxLoggedCause  = 4096
)

const (
	ownerType = `CASE WHEN NEW.workloadinstanceid IS NOT NULL THEN 'WorkloadInstance' WHEN NEW.helmworkloadinstanceid IS NOT NULL THEN 'HelmWorkloadInstance' ELSE '' END`
	ownerID   = "COALESCE(NEW.workloadinstanceid, NEW.helmworkloadinstanceid, 0)"

	// lastPosition is that of the newest record of a cluster.
	lastPosition = "COALESCE((SELECT MAX(q.position) FROM log_queue q WHERE q.clusteruid = x.clusteruid), 0)"
)

// An Event of v0 has no cluster: its workload has.
var queueEvent = fmt.Sprintf(`INSERT INTO log_queue (at, type, id, eventid, clusteruid, position)
	SELECT NEW.updatedat, %[1]s, %[2]s, NEW.id, x.clusteruid, %[3]s + %[4]d
	FROM (SELECT COALESCE(NEW.clusteruid, (SELECT w.clusteruid FROM workloads w WHERE w.type = %[1]s AND w.id = %[2]s), '') AS clusteruid) x`,
	ownerType, ownerID, lastPosition, rowBytes)

// The start of a status is reported, and may be old when the silence of the cluster ends.
var queueStatus = fmt.Sprintf(`INSERT INTO log_queue (at, type, id, changedat, status, previous, reason, cause, clusteruid, position)
	SELECT NEW.changedat, NEW.type, NEW.id,
		CASE WHEN OLD.status <> NEW.status AND NOT OLD.silent AND NOT NEW.silent AND NEW.since > 0 THEN NEW.since ELSE NEW.changedat END,
		NEW.status, OLD.status, x.reason, x.cause, x.clusteruid,
		%[1]s + %[2]d + octet_length(NEW.status) + octet_length(OLD.status) + octet_length(x.reason) + octet_length(x.cause)
	FROM (SELECT COALESCE(NEW.clusteruid, '') AS clusteruid,
		CASE WHEN NEW.silent THEN 'AgentOffline' ELSE substr(NEW.reason, 1, %[3]d) END AS reason,
		CASE WHEN NEW.silent THEN 'the agent does not report' ELSE substr(NEW.cause, 1, %[4]d) END AS cause) x`,
	lastPosition, rowBytes, maxLoggedReason, maxLoggedCause)

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
