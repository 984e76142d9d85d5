package store

import (
	"context"
	"sync"
	"time"
)

// A cluster pauses after a set whose transactions took more than longApply, and after a shorter one if another set of it waits.
// The pause is at least as long as the transactions. It grows with their square up to maxPause, because a long set also delays those of
// others for longer. With sets of less than longApply, a cluster has the database for half of the time. With sets from
// 250 ms to a second, it has a sixth at most.
const (
	longApply = 50 * time.Millisecond
	maxPause  = 5 * time.Second
)

// clusterQueue lets one report set of each cluster at a time wait for the database. The transactions of a cluster exclude
// each other anyway. SQLite has one writer, so a cluster with many sets at once would delay the sets of all others. It is
// safe for concurrent use; the zero value is empty.
type clusterQueue struct {
	mu       sync.Mutex
	clusters map[string]*clusterSlot
}

// clusterSlot is free if free has a value. users counts the sets that hold it or wait for it.
type clusterSlot struct {
	free  chan struct{}
	users int
}

// acquire waits until no other set of the cluster is applied, and for the pause after it. The caller calls release unless there is
// an error, with the time that its transactions took.
func (q *clusterQueue) acquire(ctx context.Context, cluster string) (release func(took time.Duration), err error) {
	slot := q.join(cluster)
	select {
	case <-slot.free:
		return func(took time.Duration) {
			if took <= longApply && !q.waits(cluster) {
				q.free(cluster)
				return
			}
			time.AfterFunc(pauseAfter(took), func() { q.free(cluster) })
		}, nil
	case <-ctx.Done():
		q.leave(cluster)
		return nil, ctx.Err()
	}
}

// pauseAfter is the pause of a cluster after transactions that took a time.
func pauseAfter(took time.Duration) time.Duration {
	square := float64(took) * float64(took) / float64(longApply)
	return max(took, min(time.Duration(square), maxPause))
}

func (q *clusterQueue) join(cluster string) *clusterSlot {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.clusters == nil {
		q.clusters = make(map[string]*clusterSlot)
	}
	slot, known := q.clusters[cluster]
	if !known {
		slot = &clusterSlot{free: make(chan struct{}, 1)}
		slot.free <- struct{}{}
		q.clusters[cluster] = slot
	}
	slot.users++
	return slot
}

// waits reports whether another set waits for the one that is applied.
func (q *clusterQueue) waits(cluster string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.clusters[cluster].users > 1
}

// free gives the slot to the next set. That set never counts the one that freed it: both happen under one lock.
func (q *clusterQueue) free(cluster string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clusters[cluster].free <- struct{}{}
	q.removeUser(cluster)
}

// leave ends the wait for the slot.
func (q *clusterQueue) leave(cluster string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeUser(cluster)
}

// removeUser needs the lock.
func (q *clusterQueue) removeUser(cluster string) {
	if q.clusters[cluster].users--; q.clusters[cluster].users == 0 {
		delete(q.clusters, cluster)
	}
}
