package main

import (
	"context"
	"strings"
	"sync/atomic"
)

// eventColumns are the columns of an Event that a report set writes.
const eventColumns = "id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid, " +
	"workloadresourceinstanceid, helmworkloadinstanceid, clusteruid, objectversion, involvedgroup, involvedversion, involvedkind, " +
	"involvednamespace, involvedname, involveduid, count, firsttimestamp, gap"

// insertedRows counts the rows that prepareInsert's functions inserted. It is the source of their IDs.
var insertedRows atomic.Int64

// prepareInsert returns a function that only inserts Events, a number of rows per INSERT. It measures the database alone.
func (d *database) prepareInsert(ctx context.Context, rows int) (func(ctx context.Context, a *agent) (int, error), error) {
	columns := strings.Count(eventColumns, ",") + 1
	tuples := make([]string, rows)
	for i := range tuples {
		placeholders := make([]string, columns)
		for c := range placeholders {
			placeholders[c] = d.dialect.placeholder(i*columns + c + 1)
		}
		tuples[i] = "(" + strings.Join(placeholders, ", ") + ")"
	}
	insert, err := d.sql.PrepareContext(ctx, "INSERT INTO workload_events ("+eventColumns+") VALUES "+strings.Join(tuples, ", ")) //nolint:gosec // columns and placeholders
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, a *agent) (int, error) {
		args := make([]any, 0, rows*columns)
		for _, report := range a.events(rows) {
			ev, at := report.Event, report.Event.Time.UnixMicro()
			args = append(args, firstEvent-insertedRows.Add(1), at, at, ev.UID, ev.Type, ev.Reason, ev.Message, at, int64(report.Instance.ID),
				int64(ev.ResourceInstanceID), nil, a.cluster, int64(report.Version), ev.Involved.Group, ev.Involved.Version, ev.Involved.Kind,
				ev.Involved.Namespace, ev.Involved.Name, ev.Involved.UID, ev.Count, at, nil)
		}
		_, err := insert.ExecContext(ctx, args...)
		return rows, err
	}, nil
}
