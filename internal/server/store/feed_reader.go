package store

import (
	"context"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A row's changedat is when it was changed by the clock of whoever did it; it can be seen from its commit on. So it
// appears late by as much as that clock is behind, and the transaction was long.
const (
	// shortLag is by how much all but very few are late at most; each read looks back that far.
	usualLag = 10 * time.Second
	// clockSkew is by how much clocks may differ: that of a CockroachDB node from the others', at most half a second, or
	// that of a machine which is just set right.
	clockSkew = 10 * time.Second
)

// longestLag is by how much a row can be late at most: no transaction is longer than the timeout of a write.
func (s *Store) maxLag() time.Duration { return s.config.WriteTimeout + clockSkew }

// feedReader reads each version of a workload's row once.
type feedReader struct {
	store *Store
	// position is when the last read that succeeded began, by the clock of the database; 0 before the first.
	position int64
	// seen is the newest version that was read of each workload that has changed of late.
	seen map[threeport.Instance]int64
}

// reset forgets all: nobody is there to be told.
func (r *feedReader) reset() { r.position, r.seen = 0, nil }

// changedKey is a workload that has changed, and when.
type changedKey struct {
	instance threeport.Instance
	at       int64
}

// read returns the workloads that have changed since the last read, or since start if there was none: as far as that
// can be seen by rows that are late by lag at most. If it fails, the next read tells of the same.
func (r *feedReader) read(ctx context.Context, start int64, lag time.Duration) ([]*workloadRow, error) {
	now, err := r.store.databaseTime(ctx)
	if err != nil {
		return nil, err
	}
	if r.position == 0 {
		r.position, r.seen = start, make(map[threeport.Instance]int64)
	}
	from := min(r.position, now) // the clock may have been set back
	keys, err := r.store.changedSince(ctx, from-lag.Microseconds(), 0)
	if err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(keys, func(key changedKey) bool { return r.seen[key.instance] >= key.at })
	rows, err := r.store.rowsOf(ctx, fresh)
	if err != nil {
		return nil, err
	}
	r.remember(fresh, rows, from-r.store.maxLag().Microseconds())
	r.position = now
	return rows, nil
}

// remember notes what was read, and forgets what changed before a time: no read looks back that far any more.
func (r *feedReader) remember(keys []changedKey, rows []*workloadRow, before int64) {
	for _, key := range keys {
		r.seen[key.instance] = key.at
	}
	for _, row := range rows { // which may be newer than its key
		r.seen[row.Instance] = max(r.seen[row.Instance], int64(row.Changed))
	}
	for instance, at := range r.seen {
		if at <= before {
			delete(r.seen, instance)
		}
	}
}

const changedQuery = "SELECT type, id, changedat FROM workloads WHERE changedat > ?"

// changedSince returns the workloads that have changed since a time, in microseconds; up to limit if that is not 0.
func (s *Store) changedSince(ctx context.Context, since int64, limit int) ([]changedKey, error) {
	query, args := changedQuery, []any{since}
	if limit > 0 {
		query, args = query+" LIMIT ?", append(args, limit)
	}
	return collect(ctx, s, query, args, func(scan scanner) (key changedKey, err error) {
		var id int64
		err = scan(&key.instance.Type, &id, &key.at)
		key.instance.ID = threeport.ID(id)
		return key, err
	})
}

// maxKeys bounds the workloads that are asked for at once. It is a power of two.
const maxKeys = 256

// rowsOf returns the rows of workloads, deleted ones too, in no order. One that is not there any more is left out.
func (s *Store) rowsOf(ctx context.Context, keys []changedKey) ([]*workloadRow, error) {
	ids := make(map[string][]any)
	for _, key := range keys {
		ids[key.instance.Type] = append(ids[key.instance.Type], int64(key.instance.ID))
	}
	var rows []*workloadRow
	for kind, all := range ids {
		for chunk := range slices.Chunk(all, maxKeys) {
			query, args := rowsQuery(kind, chunk)
			some, err := collect(ctx, s, query, args, scanWorkload)
			if err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}
	return rows, nil
}

// rowsQuery asks for workloads of one type. The number of IDs is filled up to a power of two, so that the database has
// few statements to prepare.
func rowsQuery(kind string, ids []any) (query string, args []any) {
	n := 1
	for n < len(ids) {
		n *= 2
	}
	args = append(append(make([]any, 0, n+1), kind), ids...)
	for len(args) < n+1 {
		args = append(args, ids[0])
	}
	return "SELECT " + workloadColumns + " FROM " + workloadTables + " WHERE w.type = ? AND w.id IN " + placeholders(n), args
}
