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

// feedInterval is the minimal time between two reads of changes, and between two notifications of other replicas.
const feedInterval = 100 * time.Millisecond

// feed distributes the changes of workloads to subscribers. A writer only signals that something changed; one
// goroutine, [Store.RunFeed], reads the rows, independent of the number of subscribers and changes.
type feed struct {
	changed   chan struct{} // capacity 1: rows may have changed and must be read
	notifyDue chan struct{} // capacity 1: rows changed here, and other replicas must be notified

	mu          sync.Mutex
	subscribers map[*Subscription]struct{}
	since       int64 // time of the first subscription, in microseconds
}

func newFeed() *feed {
	return &feed{
		changed:     make(chan struct{}, 1),
		notifyDue:   make(chan struct{}, 1),
		subscribers: make(map[*Subscription]struct{}),
	}
}

// signalChange signals that workloads may have changed. Call it after a commit; it never blocks.
func (s *Store) signalChange() {
	wake(s.feed.changed)
	wake(s.feed.notifyDue)
}

// wake sends on a channel of capacity 1 unless a signal is pending.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add subscribes to changes from now on, a time in microseconds.
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

// subscribedSince returns the time of the first subscription; ok is false if there are no subscribers.
func (f *feed) subscribedSince() (start int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.since, len(f.subscribers) > 0
}

// broadcast offers rows to all subscribers, which then have all changes up to position.
func (f *feed) broadcast(rows []*workloadRow, place int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subscribers {
		sub.offer(rows)
		sub.advance(place)
	}
}

// endAll ends all subscriptions.
func (f *feed) endAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subscribers {
		sub.end()
	}
	clear(f.subscribers)
}

// RunFeed delivers changes to subscribers until ctx ends. Then it ends their subscriptions and returns nil. It must not
// run twice at the same time. It logs database errors and retries; no change is lost.
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

// readFeed reads recent changes when it is signalled, and also late ones at each poll.
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
			s.config.Feed.Log.WarnContext(ctx, "Reading changed workloads failed; retrying", "error", err)
		}
		s.feed.broadcast(rows, reader.position)
		if !sleep(ctx, feedInterval) {
			return nil
		}
	}
}

// WatchQuery selects the changes of a subscription.
type WatchQuery struct {
	// Board is the filter. Its sort, cursor and size are ignored.
	Board WorkloadQuery
	// Instance, if set, restricts the changes to one workload.
	Instance *threeport.Instance
	// After is the Changed of the last row that the caller has, or a [Subscription.Position]; nil starts now.
	After *threeport.ID
}

// Watch subscribes to changes of workloads that are committed from now on and, if After is set, to those since then.
// Changes of about the last minute before After may be repeated. The caller must close the subscription. The error is
// that of [WorkloadQuery.Validate] for an invalid filter.
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

// replay offers the changes since a position, or resets the subscription if there are too many or some are no longer
// stored. A position in the future comes from another database, or from before the clock was set back.
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

// Default values of [FeedConfig].
const (
	DefaultFeedPoll   = 5 * time.Second
	DefaultTombstones = 7 * 24 * time.Hour
)

// FeedConfig configures the change feed. Zero fields have their default.
type FeedConfig struct {
	// Poll is the interval of looking for changes without a signal.
	Poll time.Duration
	// Tombstones is how long deleted workloads are stored. A subscription with an older After is reset.
	Tombstones time.Duration
	// Log receives errors that are retried; nil discards them.
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
