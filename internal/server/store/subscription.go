package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/threeport/threeport-agent/internal/threeport"
)

var (
	// ErrReset says that changes were left out: the workloads are to be loaded anew. The subscription goes on.
	ErrReset = errors.New("changes were left out: load the workloads anew")
	// ErrEnded says that there will be no more changes, because the subscription was closed or the feed has ended.
	ErrEnded = errors.New("the subscription has ended")
)

const (
	// maxPending bounds the workloads that a subscriber has not been told of. Who is further behind loads them anew, which
	// is the lesser work.
	maxPending = 5000
	// maxBatch bounds what Next returns.
	maxBatch = 500
)

// Subscription is the changes of some workloads. It keeps the newest row of each that has changed, until Next takes it:
// a slow reader gets fewer versions, not older ones.
type Subscription struct {
	feed  *feed
	query WatchQuery
	ready chan struct{} // there is something to take

	mu            sync.Mutex
	pending       map[threeport.Instance]*threeport.Workload
	position      int64 // in the feed, up to which everything was offered, in microseconds
	resetDue      bool  // reset is due
	resetPosition int64 // then: the place up to which nothing was missed
	ended         bool
}

// newSubscription is told of what changes from now on, a time in microseconds.
func newSubscription(f *feed, q WatchQuery, now int64) *Subscription {
	return &Subscription{
		feed: f, query: q, position: now,
		ready: make(chan struct{}, 1), pending: make(map[threeport.Instance]*threeport.Workload),
	}
}

// Next waits for changes, and returns them in the order of Changed. A row that is deleted, or does not match, has Gone
// set. Its error is [ErrReset], [ErrEnded] or that of ctx. It is for one goroutine at a time.
func (s *Subscription) Next(ctx context.Context) ([]threeport.Workload, error) {
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

// Place is where to go on from in another subscription: all that Next has not returned comes there, if it was told to load
// the workloads anew when it was.
func (s *Subscription) Position() threeport.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resetDue {
		return threeport.ID(s.resetPosition)
	}
	return threeport.ID(s.undelivered())
}

// untold is the place before the first of what is pending.
func (s *Subscription) undelivered() int64 {
	place := s.position
	for _, row := range s.pending {
		place = min(place, int64(row.Changed)-1)
	}
	return place
}

// reached notes that everything up to a place in the feed was offered.
func (s *Subscription) advance(place int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = max(s.position, place)
}

// Close ends the subscription. It may be called more than once, and while Next waits.
func (s *Subscription) Close() {
	s.feed.remove(s)
	s.end()
}

func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	wake(s.ready)
}

// reset lets Next return [ErrReset], since what comes after a place cannot be told.
func (s *Subscription) reset(place int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requireReset(place)
}

// miss makes a reset due. Until it is told nothing is kept: whoever then loads the workloads gets it all.
func (s *Subscription) requireReset(place int64) {
	s.resetDue, s.resetPosition = true, place
	clear(s.pending)
	wake(s.ready)
}

// take returns the oldest of what is pending.
func (s *Subscription) take() ([]threeport.Workload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, ErrEnded
	case s.resetDue:
		s.resetDue = false
		return nil, ErrReset
	}
	oldest := slices.SortedFunc(maps.Values(s.pending), func(a, b *threeport.Workload) int {
		return cmp.Or(cmp.Compare(a.Changed, b.Changed), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	oldest = oldest[:min(len(oldest), maxBatch)]
	rows := make([]threeport.Workload, len(oldest))
	for i, row := range oldest {
		rows[i] = *row
		delete(s.pending, row.Instance)
	}
	return rows, nil
}

// offer keeps those of the rows that are asked for. They are not copied, which for hundreds of slow readers would be most of
// the memory: all subscriptions have the same, and nobody changes them.
func (s *Subscription) offer(rows []*workloadRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resetDue {
		return
	}
	for _, row := range rows {
		if s.query.Instance != nil && *s.query.Instance != row.Instance || !s.query.Board.matchesScope(&row.Workload) {
			continue
		}
		if queued, ok := s.pending[row.Instance]; ok && queued.Changed >= row.Changed {
			continue
		}
		workload := &row.Workload
		if row.deleted || !s.query.Board.matches(workload) {
			gone := *workload
			gone.Gone = true
			workload = &gone
		}
		s.pending[row.Instance] = workload
	}
	switch {
	case len(s.pending) > maxPending:
		s.requireReset(s.undelivered())
	case len(s.pending) > 0:
		wake(s.ready)
	}
}
