package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// DefaultLogRecords is a [Config].LogRecords for servers with an export: in SQLite such a queue takes about 100 MiB.
const DefaultLogRecords = 1_000_000

// The limits of the records that are exported together. maxPageBytes limits their texts.
const maxLogBatch = 500

// LogRecord is a record to export: a version of an Event, or a change of the status of a workload.
type LogRecord struct {
	// UID is the same in each export of this record, and no other record has it.
	UID string
	// StoredAt is when the API stored the Event or the change.
	StoredAt time.Time
	Workload LoggedWorkload
	// One of these is nil.
	Event  *threeport.TimelineEvent
	Status *StatusChange
}

// LoggedWorkload is the workload of a [LogRecord], with its present name and cluster. The names of a workload that is no longer stored are
// empty.
type LoggedWorkload struct {
	threeport.Instance
	Name, ClusterUID, ClusterName string
}

// StatusChange is a change of the displayed status of a workload, or of its reason.
type StatusChange struct {
	Time                            time.Time
	Status, Previous, Reason, Cause string
}

// LogExport is the result of [Store.ExportLogs].
type LogExport struct {
	// Records were sent.
	Records int
	// Lost is the number of records that were removed without an export: pruning deleted their Events, or there were more records than
	// Config.LogRecords.
	Lost int64
	// More reports whether records may be left.
	More bool
}

// ExportLogs passes the oldest records that wait for export to send, and removes them if it returns nil. Otherwise the next call passes
// them again, perhaps in another process. It does nothing while another replica exports.
//
// An Event that was updated meanwhile has only its newest version.
func (s *Store) ExportLogs(ctx context.Context, send func(context.Context, []LogRecord) error) (done LogExport, err error) {
	unlock, ok, err := s.tryLock(ctx, lockLogExport)
	if err != nil || !ok {
		return LogExport{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if done.Lost, err = s.trimLogQueue(ctx); err != nil {
		return done, fmt.Errorf("trim the queue of log records: %w", err)
	}
	batch, err := s.readLogBatch(ctx)
	if err != nil {
		return done, fmt.Errorf("read log records: %w", err)
	}
	if len(batch.records) > 0 {
		if err := send(ctx, batch.records); err != nil {
			return done, err
		}
	}
	if err := s.removeLogs(ctx, batch.finished); err != nil {
		return done, fmt.Errorf("remove exported log records: %w", err)
	}
	done.Records, done.More = len(batch.records), batch.more
	done.Lost += batch.lost
	return done, nil
}

// LogBacklog returns the number of records that wait for export, and when the oldest was stored; nil if there are none.
func (s *Store) LogBacklog(ctx context.Context) (records int64, oldest *time.Time, err error) {
	var at sql.NullInt64
	records, err = first(ctx, s.read, "SELECT COUNT(*), (SELECT at FROM log_queue ORDER BY seq LIMIT 1) FROM log_queue", nil,
		func(scan scanner) (n int64, err error) {
			err = scan(&n, &at)
			return n, err
		})
	if err != nil {
		return 0, nil, fmt.Errorf("read the backlog of log records: %w", err)
	}
	return records, optionalTime(at), nil
}

// trimLogQueue removes the oldest records beyond Config.LogRecords, and returns their number. seq may have gaps, so it may remove a few more.
func (s *Store) trimLogQueue(ctx context.Context) (removed int64, err error) {
	last, err := first(ctx, s.read, "SELECT COALESCE((SELECT MAX(seq) FROM log_queue) - (SELECT MIN(seq) FROM log_queue), 0)", nil, number)
	if err != nil || last < s.config.LogRecords {
		return 0, err
	}
	p := pruner{store: s}
	err = p.delete(ctx, deletion{
		"log_queue", "seq", "log_queue WHERE seq <= (SELECT MAX(seq) FROM log_queue) - ? ORDER BY seq", []any{s.config.LogRecords}, &removed,
	})
	return removed, err
}

// logBatch is a part of the queue.
type logBatch struct {
	records []LogRecord
	// finished are the rows to remove after the export, also those without a record.
	finished []int64
	lost     int64
	more     bool
}

// queuedLog is a row of log_queue, with the version of its Event.
type queuedLog struct {
	LogRecord

	seq, at   int64
	eventID   sql.NullInt64
	updatedAt sql.NullInt64 // of the Event; NULL if it is not stored
	bytes     int
}

// isCurrent reports whether the row has the newest version of its Event. A newer version has a later row.
func (q *queuedLog) isCurrent() bool { return q.updatedAt.Int64 == q.at }

var queuedLogs = "SELECT q.seq, q.at, q.type, q.id, q.eventid, e.updatedat, COALESCE(octet_length(e.message), 0), q.changedat, q.status, q.previous, " +
	boundedText("q.reason") + ", " + boundedText("q.cause") + ", " + boundedText("COALESCE(w.name, '')") + ", COALESCE(w.clusteruid, ''), COALESCE(c.name, '') " +
	`FROM log_queue q LEFT JOIN workload_events e ON e.id = q.eventid LEFT JOIN workloads w ON w.type = q.type AND w.id = q.id
	LEFT JOIN clusters c ON c.uid = w.clusteruid ORDER BY q.seq LIMIT ?`

func scanQueuedLog(scan scanner) (*queuedLog, error) {
	var (
		q             queuedLog
		change        StatusChange
		id, changedAt int64
	)
	err := scan(&q.seq, &q.at, &q.Workload.Type, &id, &q.eventID, &q.updatedAt, &q.bytes, &changedAt, &change.Status, &change.Previous,
		&change.Reason, &change.Cause, &q.Workload.Name, &q.Workload.ClusterUID, &q.Workload.ClusterName)
	q.Workload.ID, q.StoredAt = threeport.ID(id), fromMicros(q.at)
	q.bytes = min(q.bytes, maxMessage) + len(change.Cause)
	if !q.eventID.Valid {
		change.Time = fromMicros(changedAt)
		q.Status = &change
	}
	q.UID = q.uid()
	return &q, err
}

// logSpace is the namespace of the UIDs of records.
var logSpace = uuid.MustParse("5c9a2a0e-3d1f-4c52-9a55-0d8b0c7f6a21")

// uid is derived from all that identifies the row. seq alone is used again after a backup was restored.
func (q *queuedLog) uid() string {
	return uuid.NewSHA1(logSpace, fmt.Append(nil, q.seq, q.at, q.Workload.Type, int64(q.Workload.ID), q.eventID.Int64)).String()
}

// readLogBatch reads the oldest records.
func (s *Store) readLogBatch(ctx context.Context) (batch logBatch, err error) {
	queued, full, err := collectPage(ctx, s.read, queuedLogs, []any{maxLogBatch}, scanQueuedLog, func(q *queuedLog) int { return q.bytes })
	if err != nil {
		return batch, err
	}
	batch.more = full || len(queued) == maxLogBatch
	var current []any
	for _, q := range queued {
		if q.eventID.Valid && q.isCurrent() {
			current = append(current, q.eventID.Int64)
		}
	}
	events, err := s.loggedEvents(ctx, current)
	if err != nil {
		return batch, err
	}
	for _, q := range queued {
		switch event := events[eventVersion{q.eventID.Int64, q.at}]; {
		case !q.eventID.Valid:
			batch.records = append(batch.records, q.LogRecord)
		case event != nil:
			q.Event = event
			batch.records = append(batch.records, q.LogRecord)
		case !q.updatedAt.Valid:
			batch.lost++
		case q.isCurrent(): // the Event has changed since the first query
			batch.more = true
			continue
		}
		batch.finished = append(batch.finished, q.seq)
	}
	return batch, nil
}

// eventVersion is the ID of an Event and its updatedat.
type eventVersion struct{ id, updatedAt int64 }

func loggedEventsQuery(events int) string {
	return "SELECT updatedat, " + eventColumns + " FROM workload_events WHERE id IN " + placeholders(events)
}

// loggedEvents reads the present versions of Events.
func (s *Store) loggedEvents(ctx context.Context, ids []any) (map[eventVersion]*threeport.TimelineEvent, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	events := make(map[eventVersion]*threeport.TimelineEvent, len(ids))
	_, err := collect(ctx, s.read, loggedEventsQuery(len(ids)), ids,
		func(scan scanner) (struct{}, error) {
			var updatedAt int64
			event, err := scanTimelineEvent(func(targets ...any) error { return scan(append([]any{&updatedAt}, targets...)...) })
			events[eventVersion{int64(event.ID), updatedAt}] = &event
			return struct{}{}, err
		})
	return events, err
}

// removeLogs removes rows of the queue, of which there are at most maxLogBatch.
func (s *Store) removeLogs(ctx context.Context, rows []int64) error {
	if len(rows) == 0 {
		return nil
	}
	args := make([]any, len(rows))
	for i, seq := range rows {
		args[i] = seq
	}
	return s.exec(ctx, "DELETE FROM log_queue WHERE seq IN "+placeholders(len(rows)), args...)
}
