package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// DefaultLogBytes is a [Config].LogBytes for servers with an export: a million Events.
const DefaultLogBytes = 256 << 20

// The limits of the records that are exported together. maxPageBytes limits their texts.
const maxLogBatch = 500

// LogRecord is a record to export: a version of an Event, or a change of the status of a workload.
type LogRecord struct {
	// UID is the same in each export of this record, and no other record has it.
	UID string
	// StoredAt is when the API stored the Event or the change.
	StoredAt time.Time
	// ClusterUID was the cluster of the workload then; empty if it had none.
	ClusterUID string
	Workload   LoggedWorkload
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
	// Records is the number of records that are settled.
	Records int
	// Lost is the number of records that were removed without an export, because pruning deleted their Events.
	Lost int64
	// More reports whether records may be left.
	More bool
}

// ExportLogs passes records that wait for export to send: those of a cluster together, oldest first. The clusters take turns. send returns
// how many of the first records are settled, also with an error. ExportLogs removes these. The next call passes the others again, perhaps
// in another process. It does nothing while another replica exports.
//
// An Event that was updated meanwhile has only its newest version.
func (s *Store) ExportLogs(ctx context.Context, send func(context.Context, []LogRecord) (settled int, err error)) (done LogExport, err error) {
	unlock, ok, err := s.tryLock(ctx, lockLogExport)
	if err != nil || !ok {
		return LogExport{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	batch, err := s.readLogBatch(ctx)
	if err != nil {
		return done, fmt.Errorf("read log records: %w", err)
	}
	var failed error
	if len(batch.records) > 0 {
		done.Records, failed = send(ctx, batch.records)
	}
	if err := s.removeLogs(ctx, slices.Concat(batch.finished, batch.rows[:done.Records])); err != nil {
		return LogExport{}, errors.Join(failed, fmt.Errorf("remove exported log records: %w", err))
	}
	done.Lost, done.More = batch.lost, batch.more
	return done, failed
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

// queuedCluster is a cluster with records that wait. Its UID is empty for those without a cluster.
type queuedCluster struct {
	uid string
	// Positions of its oldest and its newest record.
	first, last int64
}

// bytes is the size of its records without the oldest.
func (c queuedCluster) bytes() int64 { return c.last - c.first }

// queuedClustersQuery jumps from cluster to cluster in the index, and does not read their other records.
const queuedClustersQuery = `WITH RECURSIVE c (uid) AS (SELECT MIN(clusteruid) FROM log_queue
	UNION ALL SELECT (SELECT MIN(q.clusteruid) FROM log_queue q WHERE q.clusteruid > c.uid) FROM c WHERE c.uid IS NOT NULL)
	SELECT c.uid, (SELECT MIN(q.position) FROM log_queue q WHERE q.clusteruid = c.uid), (SELECT MAX(q.position) FROM log_queue q WHERE q.clusteruid = c.uid)
	FROM c WHERE c.uid IS NOT NULL`

// queuedClusters returns the clusters with records that wait, by UID.
func (s *Store) queuedClusters(ctx context.Context) ([]queuedCluster, error) {
	all, err := collect(ctx, s.read, queuedClustersQuery, nil, func(scan scanner) (c queuedCluster, err error) {
		var first, last sql.NullInt64 // NULL if the records were removed meanwhile
		err = scan(&c.uid, &first, &last)
		c.first, c.last = first.Int64, last.Int64
		return c, err
	})
	slices.SortFunc(all, func(a, b queuedCluster) int { return strings.Compare(a.uid, b.uid) })
	return all, err
}

// TrimLogs removes the oldest records of the clusters with the most bytes, until all records that wait have Config.LogBytes, besides one
// record of each cluster. It returns their number. Call it often: the queue grows in between.
//
// On PostgreSQL, concurrent writes of v0 to one cluster may get the same position, and count once.
func (s *Store) TrimLogs(ctx context.Context) (removed int64, err error) {
	clusters, err := s.queuedClusters(ctx)
	if err != nil {
		return 0, fmt.Errorf("list clusters with log records: %w", err)
	}
	var sizes []int64
	for _, c := range clusters {
		sizes = append(sizes, c.bytes())
	}
	share := fairShare(sizes, s.config.LogBytes)
	p := pruner{store: s}
	for _, c := range clusters {
		if c.bytes() <= share {
			continue
		}
		err := p.delete(ctx, deletion{
			"log_queue", "seq", "log_queue WHERE clusteruid = ? AND position <= ? ORDER BY position, seq", []any{c.uid, c.last - share}, &removed,
		})
		if err != nil {
			return removed, fmt.Errorf("trim the queue of log records: %w", err)
		}
	}
	return removed, nil
}

// fairShare limits each size, so that all sizes together have the total. Smaller sizes leave their rest to larger ones. It sorts the sizes.
func fairShare(sizes []int64, total int64) int64 {
	slices.Sort(sizes)
	for i, size := range sizes {
		share := total / int64(len(sizes)-i)
		if size > share {
			return share
		}
		total -= size
	}
	return math.MaxInt64
}

// logBatch is a part of the queue.
type logBatch struct {
	records []LogRecord
	rows    []int64 // of the records
	// finished are the rows without a record, to remove in any case.
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

var queuedLogs = "SELECT q.seq, q.at, q.clusteruid, q.type, q.id, q.eventid, e.updatedat, COALESCE(octet_length(e.message), 0), q.changedat, " +
	"q.status, q.previous, q.reason, q.cause, " + boundedText("COALESCE(w.name, '')") + ", COALESCE(w.clusteruid, ''), COALESCE(c.name, '') " +
	`FROM log_queue q LEFT JOIN workload_events e ON e.id = q.eventid LEFT JOIN workloads w ON w.type = q.type AND w.id = q.id
	LEFT JOIN clusters c ON c.uid = w.clusteruid WHERE q.clusteruid = ? ORDER BY q.position, q.seq LIMIT ?`

func scanQueuedLog(scan scanner) (*queuedLog, error) {
	var (
		q             queuedLog
		change        StatusChange
		id, changedAt int64
	)
	err := scan(&q.seq, &q.at, &q.ClusterUID, &q.Workload.Type, &id, &q.eventID, &q.updatedAt, &q.bytes, &changedAt, &change.Status,
		&change.Previous, &change.Reason, &change.Cause, &q.Workload.Name, &q.Workload.ClusterUID, &q.Workload.ClusterName)
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

// readQueuedLogs reads rows of the clusters, beginning with the next in turn. full reports whether rows may be left. A cluster whose
// rows do not fit behind those of others begins the next batch, so that each has the space of a batch in its turn.
func (s *Store) readQueuedLogs(ctx context.Context) (rows []*queuedLog, full bool, err error) {
	clusters, err := s.queuedClusters(ctx)
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	for i, c := range inTurn(clusters, s.lastLogCluster.Load()) {
		if len(rows) >= maxLogBatch || bytes >= maxPageBytes {
			return rows, true, nil
		}
		before := bytes
		size := func(q *queuedLog) int {
			n := before + q.bytes
			bytes, before = bytes+q.bytes, 0
			return n
		}
		limit := maxLogBatch - len(rows)
		page, cut, err := collectPage(ctx, s.read, queuedLogs, []any{c.uid, limit}, scanQueuedLog, size)
		if err != nil {
			return nil, false, err
		}
		cut = cut || len(page) == limit
		rows, full = append(rows, page...), full || cut
		if i == 0 || !cut {
			s.lastLogCluster.Store(&c.uid)
		}
	}
	return rows, full, nil
}

// inTurn returns clusters, which are sorted, beginning with the first one after last; nil is for none.
func inTurn(clusters []queuedCluster, last *string) []queuedCluster {
	if last == nil {
		return clusters
	}
	next := slices.IndexFunc(clusters, func(c queuedCluster) bool { return c.uid > *last })
	if next < 0 {
		return clusters
	}
	return slices.Concat(clusters[next:], clusters[:next])
}

// readLogBatch reads the next records.
func (s *Store) readLogBatch(ctx context.Context) (batch logBatch, err error) {
	queued, full, err := s.readQueuedLogs(ctx)
	if err != nil {
		return batch, err
	}
	batch.more = full
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
	add := func(q *queuedLog) {
		batch.records, batch.rows = append(batch.records, q.LogRecord), append(batch.rows, q.seq)
	}
	for _, q := range queued {
		switch event := events[eventVersion{q.eventID.Int64, q.at}]; {
		case !q.eventID.Valid:
			add(q)
		case event != nil:
			q.Event = event
			add(q)
		case q.updatedAt.Valid && q.isCurrent(): // the Event has changed since the first query
			batch.more = true
		default:
			if !q.updatedAt.Valid {
				batch.lost++
			}
			batch.finished = append(batch.finished, q.seq)
		}
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
