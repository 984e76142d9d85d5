package outbox

import (
	"container/list"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// minEventShare is a divisor: Events may always take an eighth of the bound. If they take less, other records exceed the
// bound, and evicting Events would not help.
const minEventShare = 8

// evictable is the place of an entry in an [evictionQueue].
type evictable struct {
	place *list.Element // nil if it is in none
	bytes int64         // an estimate
}

// evictionQueue has the entries with an Event that may be evicted, the oldest first.
type evictionQueue struct {
	normal, warning *list.List
	bytes           int64 // their estimated size
}

func newEvictionQueue() evictionQueue {
	return evictionQueue{normal: list.New(), warning: list.New()}
}

// add adds an entry with an Event, in place of the Event that the entry had before.
func (q *evictionQueue) add(e *entry, ev observe.Event) {
	q.remove(e)
	of := q.normal
	if ev.Type != corev1.EventTypeNormal {
		of = q.warning
	}
	const fixed = 4096 // memory of an Event besides its texts, here and in earlier stages; measured
	e.evict.bytes = int64(fixed + len(ev.Message) + len(ev.Reason) + 2*len(ev.Involved.Name))
	e.evict.place = of.PushBack(e)
	q.bytes += e.evict.bytes
}

// remove removes an entry, if it is in the queue.
func (q *evictionQueue) remove(e *entry) {
	if e.evict.place == nil {
		return
	}
	q.normal.Remove(e.evict.place) // a list ignores an element of another one
	q.warning.Remove(e.evict.place)
	q.bytes -= e.evict.bytes
	e.evict = evictable{}
}

// next returns the oldest Normal Event that is not being sent, or else the oldest Warning; nil if there is none.
func (q *evictionQueue) next() *entry {
	for _, of := range []*list.List{q.normal, q.warning} {
		for at := of.Front(); at != nil; at = at.Next() {
			if e := at.Value.(*entry); !e.isInFlight() {
				return e
			}
		}
	}
	return nil
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
	e.end(o.protocol.version(report), evicted)
	o.unqueue(e)
	o.clearPending(e)
	o.setDead(e, nil)
	key, dropped := o.dropped.add(report.(observe.Event), time.Now())
	o.persistence.saveDropped(key, dropped)
	o.gc(e)
	o.offer(dropped.report())
}

// Dropped returns how many Events were dropped since the outbox was made.
func (o *Outbox) Dropped() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped.total
}
