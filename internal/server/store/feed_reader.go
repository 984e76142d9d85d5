package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A row's changedat is set before its transaction commits, by the clock of the writer. So a row becomes visible late,
// by the clock's error plus the transaction's duration.
const (
	// usualLag covers nearly all late rows; each read looks back this far.
	usualLag = 10 * time.Second
	// clockSkew is the maximal difference between clocks: at most half a second between CockroachDB nodes, more on a
	// machine whose clock was just set.
	clockSkew = 10 * time.Second
)

// maxLag covers all late rows: no transaction lasts longer than WriteTimeout.
func (f *feed) maxLag() time.Duration { return f.db.config.WriteTimeout + clockSkew }

// feedReader reads each version of a workload's row once.
type feedReader struct {
	feed *feed
	// position is the start of the last successful read by the database's clock; 0 before the first.
	position int64
	// seen is the newest version that was read of each recently changed workload.
	seen map[threeport.Instance]int64
}

// reset forgets the position: there are no subscribers.
func (r *feedReader) reset() { r.position, r.seen = 0, nil }

// changedKey is a workload and its changedat.
type changedKey struct {
	instance threeport.Instance
	at       int64
}

// read passes on the workloads that changed since the last read, or since start for the first one, in chunks. It misses rows that
// become visible later than lag. After an error the next read passes on the missing changes.
func (r *feedReader) read(ctx context.Context, start int64, lag time.Duration, pass func([]*changedRow)) error {
	now, err := r.feed.db.databaseTime(ctx)
	if err != nil {
		return err
	}
	if r.position == 0 {
		r.position, r.seen = start, make(map[threeport.Instance]int64)
	}
	from := min(r.position, now) // the clock may have been set back
	keys, err := r.feed.changedSince(ctx, from-lag.Microseconds(), 0)
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(keys, func(key changedKey) bool { return r.seen[key.instance] >= key.at })
	for rows, err := range r.feed.rowsOf(ctx, fresh, maxKeys) {
		if err != nil {
			return err
		}
		for _, row := range rows { // a row may be newer than its key
			r.seen[row.Instance] = max(r.seen[row.Instance], int64(row.Changed))
		}
		pass(rows)
	}
	r.remember(fresh, from-r.feed.maxLag().Microseconds())
	r.position = now
	return nil
}

// remember records the changes that were read, and forgets those before a time that no later read goes back to.
func (r *feedReader) remember(keys []changedKey, before int64) {
	for _, key := range keys { // the row may be newer than its key, or no longer exist
		r.seen[key.instance] = max(r.seen[key.instance], key.at)
	}
	for instance, at := range r.seen {
		if at <= before {
			delete(r.seen, instance)
		}
	}
}

const changedQuery = "SELECT type, id, changedat FROM workloads WHERE changedat > ?"

// changedSince returns the workloads that changed since a time, in microseconds; limit 0 means all.
func (f *feed) changedSince(ctx context.Context, since int64, limit int) ([]changedKey, error) {
	query, args := changedQuery, []any{since}
	if limit > 0 {
		query, args = query+" LIMIT ?", append(args, limit)
	}
	return collect(ctx, f.db.read, query, args, func(scan scanner) (key changedKey, err error) {
		var id int64
		err = scan(&key.instance.Type, &id, &key.at)
		key.instance.ID = threeport.ID(id)
		return key, err
	})
}

// maxKeys limits the workloads of one query. It must be a power of two.
const maxKeys = 256

// rowsOf returns the rows of workloads, including deleted ones, in chunks of up to size, at most maxKeys. It skips rows that no longer exist, and
// ends after an error. The oldest changes come first, so that the ID of an event is a place to resume from.
func (f *feed) rowsOf(ctx context.Context, keys []changedKey, size int) iter.Seq2[[]*changedRow, error] {
	slices.SortFunc(keys, func(a, b changedKey) int { return cmp.Compare(a.at, b.at) })
	return func(yield func([]*changedRow, error) bool) {
		for chunk := range slices.Chunk(keys, size) {
			rows, err := f.rowsOfChunk(ctx, chunk)
			if !yield(changedRows(rows...), err) || err != nil {
				return
			}
		}
	}
}

// rowsOfChunk returns the rows of up to maxKeys workloads, in any order.
func (f *feed) rowsOfChunk(ctx context.Context, keys []changedKey) (rows []*workloadRow, err error) {
	ids := make(map[string][]any)
	for _, key := range keys {
		ids[key.instance.Type] = append(ids[key.instance.Type], int64(key.instance.ID))
	}
	for kind, all := range ids {
		query, args := rowsQuery(kind, all)
		some, err := collect(ctx, f.db.read, query, args, scanWorkload)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// rowsQuery selects workloads of one type. It pads the IDs to a power of two, so that there are few statements to
// prepare.
func rowsQuery(kind string, ids []any) (query string, args []any) {
	n := 1
	for n < len(ids) {
		n *= 2
	}
	args = append(append(make([]any, 0, n+1), kind), ids...)
	for len(args) < n+1 {
		args = append(args, ids[0])
	}
	return "SELECT " + workloadColumns(maxListedText) + " FROM " + workloadTables + " WHERE w.type = ? AND w.id IN " + placeholders(n), args
}
