package store

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// feedInterval is the minimal time between two reads of changes, and between two notifications of other replicas.
const feedInterval = 100 * time.Millisecond

// maxFeedPause limits the pause after a slow read, such as one of a database that does not answer.
const maxFeedPause = 5 * time.Second

// feedPause is the pause after a read of changes and their distribution, which took a time. It is four times as long, so that the
// filters of hundreds of subscriptions take a fifth of a processor.
func feedPause(took time.Duration) time.Duration {
	return min(max(feedInterval, 4*took), maxFeedPause)
}

// feed distributes the changes of workloads to subscribers. A writer only signals that something changed; one
// goroutine, [Store.RunFeed], reads the rows, independent of the number of subscribers and changes.
type feed struct {
	db *database

	changed   chan struct{} // capacity 1: rows may have changed and must be read
	notifyDue chan struct{} // capacity 1: rows changed here, and other replicas must be notified

	replays *semaphore.Weighted

	mu          sync.Mutex
	subscribers map[*Subscription]struct{}
	since       int64 // time of the first subscription, in microseconds
}

func newFeed(db *database) *feed {
	return &feed{
		db:          db,
		changed:     make(chan struct{}, 1),
		notifyDue:   make(chan struct{}, 1),
		replays:     semaphore.NewWeighted(maxReplays),
		subscribers: make(map[*Subscription]struct{}),
	}
}

// signal reports that workloads may have changed. Call it after a commit; it never blocks.
func (f *feed) signal() {
	wake(f.changed)
	wake(f.notifyDue)
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

// broadcast offers rows to all subscribers.
func (f *feed) broadcast(rows []*changedRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subscribers {
		sub.offer(rows)
	}
}

// advance reports to all subscribers that they were offered all changes up to a position.
func (f *feed) advance(place int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subscribers {
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
	return s.feed.run(ctx, strconv.FormatInt(s.ids.next(), 10))
}

// run implements RunFeed. replica is the ID of this process.
func (f *feed) run(ctx context.Context, replica string) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer f.endAll()
	if f.db.postgres != nil {
		running.Go(func() { f.listen(ctx, replica) })
		running.Go(func() { f.notify(ctx, replica) })
	}
	return f.deliver(ctx)
}

// deliver reads recent changes when it is signalled, and also late ones at each poll.
func (f *feed) deliver(ctx context.Context) error {
	poll := time.NewTicker(f.db.config.Feed.Poll)
	defer poll.Stop()
	reader := feedReader{feed: f}
	for {
		lag := usualLag
		select {
		case <-ctx.Done():
			return nil
		case <-f.changed:
		case <-poll.C:
			lag = f.maxLag()
		}
		start, ok := f.subscribedSince()
		if !ok {
			reader.reset()
			continue
		}
		begin := time.Now()
		err := reader.read(ctx, start, lag, f.broadcast)
		if err != nil && ctx.Err() == nil {
			f.db.config.Feed.Log.WarnContext(ctx, "Reading changed workloads failed; retrying", "error", err)
		}
		f.advance(reader.position)
		if !sleep(ctx, feedPause(time.Since(begin))) {
			return nil
		}
	}
}

// WatchQuery selects the changes of a subscription.
type WatchQuery struct {
	// Filter selects workloads. Its sort, cursor and size are ignored.
	Filter WorkloadQuery
	// Instance, if set, restricts the changes to one workload.
	Instance *threeport.Instance
	// After is the Changed of the last row that the caller has, or a [Subscription.Position]; nil starts now.
	After *threeport.ID
}

// Watch subscribes to changes of workloads that are committed from now on and, if After is set, to those since then.
// Changes of about the last minute before After may be repeated. If there are too many, or too many others resume, the
// subscription is reset. The caller must close the subscription. The error is
// that of [WorkloadQuery.Validate] for an invalid filter.
func (s *Store) Watch(ctx context.Context, q WatchQuery) (*Subscription, error) {
	if err := q.Filter.validateFilter(); err != nil {
		return nil, err
	}
	now, err := s.databaseTime(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch workloads: %w", err)
	}
	sub := newSubscription(s.feed, q, now)
	s.feed.add(sub, now)
	if q.After != nil {
		if err := s.feed.replay(ctx, sub, int64(*q.After), now); err != nil {
			sub.Close()
			return nil, fmt.Errorf("watch workloads: %w", err)
		}
	}
	return sub, nil
}

// replay offers the changes since a position, or resets the subscription if there are too many or some are no longer
// stored. A position in the future comes from another database, or from before the clock was set back.
func (f *feed) replay(ctx context.Context, sub *Subscription, after, now int64) error {
	lag := f.maxLag().Microseconds()
	if after < now-f.db.config.Feed.Tombstones.Microseconds()+lag || after > now+lag {
		sub.reset(after)
		return nil
	}
	if !f.acquireReplay(ctx, sub) {
		sub.reset(after)
		return ctx.Err()
	}
	keys, err := f.changedSince(ctx, after-lag, maxReplayed+1)
	if err != nil {
		return err
	}
	if len(keys) > maxReplayed {
		sub.reset(after)
		return nil
	}
	left := maxReplayedBytes
	for rows, err := range f.rowsOf(ctx, keys, replayChunk) {
		if err != nil {
			return err
		}
		for _, row := range rows {
			left -= row.textBytes
		}
		if left < 0 || !sub.offer(rows) {
			sub.reset(after) // the other chunks are dropped
			return nil
		}
	}
	return nil
}

// Each subscription that resumes has rows of its own until its reader has received them, so a reader that does not read holds
// them until it is cut off. All replays together take up to 50 MiB: a row has about 2 KiB besides its texts.
const (
	maxReplays = 64
	// maxReplayed and maxReplayedBytes limit the rows of one replay, and their texts as JSON. Beyond that, the reader loads the workloads
	// again: the list has a limit of memory.
	maxReplayed      = 256
	maxReplayedBytes = 256 << 10
	// replayChunk is the number of rows that are read before their texts are counted.
	replayChunk = 32
	// replayWait is how long a subscription waits for the replays of others.
	replayWait = time.Second
)

// acquireReplay takes a slot for a replay until its rows were sent, and reports false if there is none.
func (f *feed) acquireReplay(ctx context.Context, sub *Subscription) bool {
	ctx, cancel := context.WithTimeout(ctx, replayWait)
	defer cancel()
	if f.replays.Acquire(ctx, 1) != nil {
		return false
	}
	sub.startReplay(sync.OnceFunc(func() { f.replays.Release(1) }))
	return true
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
