package outbox

import (
	"container/heap"
	"container/list"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// minEventShare is a divisor: Events may always take an eighth of the bound. If they take less, other records exceed the
// bound, and evicting Events would not help.
const minEventShare = 8

// evictable is the place of an entry in an [evictionQueue].
type evictable struct {
	share *eventShare   // nil if it is in none
	place *list.Element // in the share
	bytes int64         // an estimate
}

// evictionQueue has the entries with an Event that may be evicted, by instance. Events of the instance with the most bytes are evicted
// first, so that no instance displaces the Events of others. Instances that the control plane has not confirmed come before all: anybody
// may declare thousands of them, with a few Events each.
type evictionQueue struct {
	shares     []*eventShare // a heap, the first to lose an Event first
	byInstance map[target.Instance]*eventShare
	bytes      int64 // the estimated size of all
}

// eventShare has the Events of an instance, the oldest first.
type eventShare struct {
	instance        target.Instance
	normal, warning *list.List
	bytes           int64
	confirmed       bool // the control plane has accepted a status of the instance
	index           int  // in the heap
}

func newEvictionQueue() evictionQueue {
	return evictionQueue{byInstance: map[target.Instance]*eventShare{}}
}

// add adds an entry with an Event, in place of the Event that the entry had before.
func (q *evictionQueue) add(e *entry, ev observe.Event, confirmed bool) {
	q.remove(e)
	share := q.byInstance[ev.Workload]
	if share == nil {
		share = &eventShare{instance: ev.Workload, normal: list.New(), warning: list.New(), confirmed: confirmed}
		q.byInstance[ev.Workload] = share
		heap.Push(q, share)
	}
	of := share.normal
	if ev.Type != corev1.EventTypeNormal {
		of = share.warning
	}
	const fixed = 4096 // memory of an Event besides its texts, here and in earlier stages; measured
	e.evict = evictable{share: share, place: of.PushBack(e), bytes: int64(fixed + len(ev.Message) + len(ev.Reason) + 2*len(ev.Involved.Name))}
	q.grow(share, e.evict.bytes)
}

// remove removes an entry, if it is in the queue.
func (q *evictionQueue) remove(e *entry) {
	share := e.evict.share
	if share == nil {
		return
	}
	share.normal.Remove(e.evict.place) // a list ignores an element of another one
	share.warning.Remove(e.evict.place)
	q.grow(share, -e.evict.bytes)
	if share.bytes == 0 {
		heap.Remove(q, share.index)
		delete(q.byInstance, share.instance)
	}
	e.evict = evictable{}
}

// confirm records that the control plane has accepted a status of an instance.
func (q *evictionQueue) confirm(instance target.Instance) {
	if share := q.byInstance[instance]; share != nil {
		share.confirmed = true
		heap.Fix(q, share.index)
	}
}

func (q *evictionQueue) grow(share *eventShare, bytes int64) {
	share.bytes += bytes
	q.bytes += bytes
	heap.Fix(q, share.index)
}

// next returns an Event that is not being sent, of the instance with the most bytes: the oldest Normal Event, or else the oldest
// Warning. If all Events of that instance are being sent, which are few, another instance follows. It returns nil if there is none.
func (q *evictionQueue) next() *entry {
	for _, share := range q.shares {
		for _, of := range []*list.List{share.normal, share.warning} {
			for at := of.Front(); at != nil; at = at.Next() {
				if e := at.Value.(*entry); !e.isInFlight() {
					return e
				}
			}
		}
	}
	return nil
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q *evictionQueue) Len() int { return len(q.shares) }

func (q *evictionQueue) Less(i, j int) bool {
	x, y := q.shares[i], q.shares[j]
	if x.confirmed != y.confirmed {
		return y.confirmed
	}
	return x.bytes > y.bytes
}

func (q *evictionQueue) Swap(i, j int) {
	q.shares[i], q.shares[j] = q.shares[j], q.shares[i]
	q.shares[i].index, q.shares[j].index = i, j
}

func (q *evictionQueue) Push(x any) {
	share := x.(*eventShare)
	share.index = len(q.shares)
	q.shares = append(q.shares, share)
}

func (q *evictionQueue) Pop() any {
	last := len(q.shares) - 1
	share := q.shares[last]
	q.shares[last], q.shares = nil, q.shares[:last]
	return share
}

// enforceBound evicts Events until the outbox keeps its bound.
func (o *Outbox) enforceBound() {
	limit := o.config.MaxBytes
	for limit > 0 && o.usedBytes() > limit && o.evictable.bytes > limit/minEventShare {
		e := o.evictable.next()
		if e == nil {
			return
		}
		o.evict(e)
	}
}

// usedBytes estimates what is held in memory or in the store.
func (o *Outbox) usedBytes() int64 {
	return max(o.persistence.bytes(), o.evictable.bytes) // a store may keep nothing
}

// evict drops an Event that waits or was rejected, and reports that it was dropped.
func (o *Outbox) evict(e *entry) {
	report := e.report
	if report == nil {
		report = e.dead.report
	}
	e.end(o.protocol.version(report), dropped)
	o.unqueue(e)
	o.clearPending(e, leftDropped)
	o.setDead(e, nil)
	key, counted := o.dropped.add(report.(observe.Event), "", time.Now())
	o.persistence.saveDropped(key, counted)
	o.gc(e)
	o.offer(counted.report())
}

// Dropped returns how many Events were dropped since the outbox was made.
func (o *Outbox) Dropped() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped.total
}
