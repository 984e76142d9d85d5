package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/threeport/threeport-agent/internal/threeport"
)

var (
	// ErrReset reports that changes were dropped: load the workloads again. The subscription continues.
	ErrReset = errors.New("changes were dropped: load the workloads again")
	// ErrEnded reports that the subscription was closed, or that the feed has ended.
	ErrEnded = errors.New("the subscription has ended")
)

const (
	// maxPending limits the undelivered workloads of a subscriber. Beyond that, loading all workloads again is cheaper.
	maxPending = 5000
	// maxPendingBytes limits the texts of these rows, as JSON. A subscription with more is reset as well. All subscriptions share the
	// pending rows. After the first reader has sent a row, it also has its JSON until the last one has: its texts again, and fieldBytes.
	maxPendingBytes = 8 << 20
	// maxBatchBytes limits the result of Next as JSON, besides one row. Readers that do not read hold their results, each in other
	// versions.
	maxBatchBytes = 16 << 10
	// maxOldest is the number of rows that are sorted for the next results.
	maxOldest = 250
)

// Subscription receives changes of workloads. It keeps the newest row of each changed workload until Next returns it,
// so a slow reader skips intermediate versions.
type Subscription struct {
	feed  *feed
	query WatchQuery
	ready chan struct{} // capacity 1: Next has something to return

	mu            sync.Mutex
	pending       map[threeport.Instance]*Change
	pendingBytes  int
	oldest        []changedKey // the pending rows to return next
	position      int64        // all changes up to this time, in microseconds, were offered.
	resetDue      bool         // Next must return ErrReset
	resetPosition int64        // then: no change up to this position was dropped
	ended         bool

	endReplay func() // gives the slot of a replay back; may be called more than once
	sending   bool   // the result of the last take has all rows that were replayed
}

// newSubscription returns a subscription that starts now, a time in microseconds.
func newSubscription(f *feed, q WatchQuery, now int64) *Subscription {
	return &Subscription{
		feed: f, query: q, position: now,
		ready: make(chan struct{}, 1), pending: make(map[threeport.Instance]*Change),
		endReplay: func() {},
	}
}

// Next waits for changes and returns them in the order of Changed. A row that was deleted, or no longer matches the
// query, has Gone set. The error is [ErrReset], [ErrEnded] or that of ctx. Only one goroutine may call it at a time.
func (s *Subscription) Next(ctx context.Context) ([]*Change, error) {
	for {
		if rows, err := s.take(); err != nil || len(rows) > 0 {
			return rows, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Position returns the position from which another subscription can continue: that one receives all changes that Next
// has not returned.
func (s *Subscription) Position() threeport.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resetDue {
		return threeport.ID(s.resetPosition)
	}
	return threeport.ID(s.undelivered())
}

// undelivered is the position before the first pending change.
func (s *Subscription) undelivered() int64 {
	place := s.position
	for _, row := range s.pending {
		place = min(place, int64(row.Changed)-1)
	}
	return place
}

// advance records that all changes up to a position were offered.
func (s *Subscription) advance(place int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = max(s.position, place)
}

// Close ends the subscription, and a waiting Next with it. It may be called more than once.
func (s *Subscription) Close() {
	s.feed.remove(s)
	s.end()
}

func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.endReplay()
	wake(s.ready)
}

// startReplay makes the subscription hold a slot of a replay until end, which it calls when the rows were sent or dropped.
func (s *Subscription) startReplay(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endReplay = end
}

// reset makes the first Next return [ErrReset]: changes after this position are not replayed.
func (s *Subscription) reset(place int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endReplay()
	s.requireReset(place)
}

// requireReset schedules a reset. Until Next returns it, nothing is queued, since the reader then loads everything.
func (s *Subscription) requireReset(place int64) {
	s.resetDue, s.resetPosition = true, place
	s.pending = make(map[threeport.Instance]*Change) // one that was cleared would keep its memory
	s.pendingBytes, s.oldest = 0, nil
	wake(s.ready)
}

// take removes and returns the oldest pending changes. The reader has sent the previous ones.
func (s *Subscription) take() ([]*Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sending || s.resetDue {
		s.endReplay()
	}
	switch {
	case s.ended:
		return nil, ErrEnded
	case s.resetDue:
		s.resetDue = false
		return nil, ErrReset
	}
	rows := s.nextBatch()
	s.sending = len(s.pending) == 0
	return rows, nil
}

// nextBatch removes and returns the oldest pending rows.
func (s *Subscription) nextBatch() (rows []*Change) {
	for size := 0; size < maxBatchBytes && len(s.pending) > 0; {
		if len(s.oldest) == 0 {
			if len(rows) > 0 {
				return rows
			}
			s.sortOldest()
		}
		key := s.oldest[0]
		s.oldest = s.oldest[1:]
		row, ok := s.pending[key.instance]
		if !ok || int64(row.Changed) != key.at {
			continue // its newer version comes later
		}
		delete(s.pending, key.instance)
		s.pendingBytes -= row.textBytes
		rows = append(rows, row)
		size += fieldBytes + row.textBytes
	}
	return rows
}

// sortOldest selects the pending rows of the next batches. Sorting all of them for each batch would take long.
func (s *Subscription) sortOldest() {
	keys := make([]changedKey, 0, len(s.pending))
	for instance, row := range s.pending {
		keys = append(keys, changedKey{instance, int64(row.Changed)})
	}
	slices.SortFunc(keys, func(a, b changedKey) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.instance.Type, b.instance.Type), cmp.Compare(a.instance.ID, b.instance.ID))
	})
	s.oldest = slices.Clone(keys[:min(len(keys), maxOldest)])
}

// offer queues the rows that match the query, and reports false if the subscription must be reset. All subscriptions share
// the rows: copies for hundreds of slow readers would need most of the memory.
func (s *Subscription) offer(rows []*changedRow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resetDue {
		return false
	}
	for _, row := range rows {
		if s.query.Instance != nil && *s.query.Instance != row.Instance || !s.query.Filter.matchesScope(&row.Workload) {
			continue
		}
		queued, ok := s.pending[row.Instance]
		if ok && queued.Changed >= row.Changed {
			continue
		}
		if ok {
			s.pendingBytes -= queued.textBytes
		}
		change := row.Change
		if row.deleted || !s.query.Filter.matches(&change.Workload) {
			change = row.asGone()
		}
		s.pending[row.Instance] = change
		s.pendingBytes += change.textBytes
	}
	switch {
	case len(s.pending) > maxPending, s.pendingBytes > maxPendingBytes:
		s.requireReset(s.undelivered())
	case len(s.pending) > 0:
		wake(s.ready)
	}
	return !s.resetDue
}
