package main

import (
	"context"
	"strings"
	"sync/atomic"
)

// insertedColumns are the columns of an Event that a report set writes.
const insertedColumns = "id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid, " +
	"workloadresourceinstanceid, clusteruid, objectversion, involvedkind, involvednamespace, involvedname, involveduid, count, firsttimestamp"

// inserted counts the rows of inserters, as the source of IDs.
var inserted atomic.Int64

// inserter returns a function that only inserts Events, a number of rows per INSERT. It measures the database alone.
func (d *database) inserter(ctx context.Context, rows int) (func(ctx context.Context, a *agent) (int, error), error) {
	columns := strings.Count(insertedColumns, ",") + 1
	tuples := make([]string, rows)
	for i := range tuples {
		marks := make([]string, columns)
		for c := range marks {
			marks[c] = d.words.mark(i*columns + c + 1)
		}
		tuples[i] = "(" + strings.Join(marks, ", ") + ")"
	}
	insert, err := d.sql.PrepareContext(ctx, "INSERT INTO workload_events ("+insertedColumns+") VALUES "+strings.Join(tuples, ", ")) //nolint:gosec // columns and placeholders
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, a *agent) (int, error) {
		args := make([]any, 0, rows*columns)
		for _, report := range a.events(rows) {
			ev, at := report.Event, report.Event.Time.UnixMicro()
			args = append(args, firstEvent-inserted.Add(1), at, at, ev.UID, ev.Type, ev.Reason, ev.Message, at, int64(report.Instance.ID),
				int64(ev.ResourceInstanceID), a.cluster, int64(report.Version), ev.Involved.Kind, ev.Involved.Namespace, ev.Involved.Name,
				ev.Involved.UID, ev.Count, at)
		}
		_, err := insert.ExecContext(ctx, args...)
		return rows, err
	}, nil
}
