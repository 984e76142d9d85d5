package store

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// pace is the least time between two reads of what has changed, and between two notifications of other replicas.
const feedInterval = 100 * time.Millisecond

// feed tells subscribers which workloads have changed. Whoever changes one only says that something has: the rows are
// read by one goroutine, [Store.RunFeed], however many subscribers and changes there are.
type feed struct {
	changed   chan struct{} // something may have changed: the rows are to be read
	notifyDue chan struct{} // something has changed here: other replicas are to be told

	mu          sync.Mutex
	subscribers map[*Subscription]struct{}
	since       int64 // when the first of the subscribers came, in microseconds
}

func newFeed() *feed {
	return &feed{
		changed:     make(chan struct{}, 1),
		notifyDue:   make(chan struct{}, 1),
		subscribers: make(map[*Subscription]struct{}),
	}
}

// touched says that workloads have changed. It is called after a commit, and never waits.
func (s *Store) signalChange() {
	wake(s.feed.changed)
	wake(s.feed.notifyDue)
}

// wake leaves a word in a channel of capacity 1; one that is there already stands for this one too.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add makes a subscriber one of those who are told of each change from now, a time in microseconds.
func (f *feed) add(sub *Subscription, now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subscribers) == 0 {
		f.since = now
	}
	f.subscribers[sub] = struct{}{}
}

func (f *feed) remove(sub *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subscribers, sub)
}

// wanted tells whether there are subscribers, and since when.
func (f *feed) subscribedSince() (start int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.since, len(f.subscribers) > 0
}

// deliver offers rows to all, with which they have been offered everything up to a place in the feed.
func (f *feed) broadcast(rows []*workloadRow, place int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subscribers {
		sub.offer(rows)
		sub.advance(place)
	}
}

// end ends all subscriptions.
func (f *feed) endAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subscribers {
		sub.end()
	}
	clear(f.subscribers)
}

// RunFeed tells subscribers of changes until ctx ends, and then ends their subscriptions and returns nil. It is to run
// once at a time. A database that does not answer is logged, and asked again: nothing is lost by it.
func (s *Store) RunFeed(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer s.feed.endAll()
	if s.postgres != nil {
		replica := strconv.FormatInt(s.ids.next(), 10)
		running.Go(func() { s.listen(ctx, replica) })
		running.Go(func() { s.notify(ctx, replica) })
	}
	return s.readFeed(ctx)
}

// readFeed reads what has changed whenever it is woken, and thoroughly at each poll.
func (s *Store) readFeed(ctx context.Context) error {
	poll := time.NewTicker(s.config.Feed.Poll)
	defer poll.Stop()
	reader := feedReader{store: s}
	for {
		lag := usualLag
		select {
		case <-ctx.Done():
			return nil
		case <-s.feed.changed:
		case <-poll.C:
			lag = s.maxLag()
		}
		start, ok := s.feed.subscribedSince()
		if !ok {
			reader.reset()
			continue
		}
		rows, err := reader.read(ctx, start, lag)
		if err != nil && ctx.Err() == nil {
			s.config.Feed.Log.WarnContext(ctx, "Changed workloads cannot be read; trying again", "error", err)
		}
		s.feed.broadcast(rows, reader.position)
		if !sleep(ctx, feedInterval) {
			return nil
		}
	}
}

// WatchQuery says which changes are asked for.
type WatchQuery struct {
	// Board is the filter: its sort, cursor and size are of no effect.
	Board WorkloadQuery
	// Instance, if set, is the only workload that is asked for.
	Instance *threeport.Instance
	// After is the Changed of the last row that was got before, or a [Subscription.Place]; nil to begin now.
	After *threeport.ID
}

// Watch subscribes to the changes of workloads that are committed from now on, and to those since After if that is set.
// Changes of about the last minute may come that were known. Close the subscription when done with it. The query's
// errors are those of [BoardQuery.Validate].
func (s *Store) Watch(ctx context.Context, q WatchQuery) (*Subscription, error) {
	if err := q.Board.validateFilter(); err != nil {
		return nil, err
	}
	now, err := s.databaseTime(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch workloads: %w", err)
	}
	sub := newSubscription(s.feed, q, now)
	s.feed.add(sub, now)
	if q.After != nil {
		if err := s.replay(ctx, sub, int64(*q.After), now); err != nil {
			sub.Close()
			return nil, fmt.Errorf("watch workloads: %w", err)
		}
	}
	return sub, nil
}

// replay offers what has changed since a place in the feed, or resets the subscription if that cannot be told or is too
// much. A place in the future is none of this database, which was restored or whose clock was set back.
func (s *Store) replay(ctx context.Context, sub *Subscription, after, now int64) error {
	lag := s.maxLag().Microseconds()
	if after < now-s.config.Feed.Tombstones.Microseconds()+lag || after > now+lag {
		sub.reset(after)
		return nil
	}
	keys, err := s.changedSince(ctx, after-lag, maxPending+1)
	if err != nil {
		return err
	}
	if len(keys) > maxPending {
		sub.reset(after)
		return nil
	}
	rows, err := s.rowsOf(ctx, keys)
	if err != nil {
		return err
	}
	sub.offer(rows)
	return nil
}

// The defaults of [FeedConfig].
const (
	DefaultFeedPoll   = 5 * time.Second
	DefaultTombstones = 7 * 24 * time.Hour
)

// FeedConfig says how the feed of changes works. A field that is zero has its default.
type FeedConfig struct {
	// Poll is how often it looks for changes that nobody told of.
	Poll time.Duration
	// Tombstones is for how long deleted workloads are kept at least: who comes back later cannot be told what was deleted.
	Tombstones time.Duration
	// Log is told of what goes wrong and is tried again; nothing is logged without one.
	Log *slog.Logger
}

func (c FeedConfig) withDefaults() FeedConfig {
	if c.Poll <= 0 {
		c.Poll = DefaultFeedPoll
	}
	if c.Tombstones == 0 {
		c.Tombstones = DefaultTombstones
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
