package outbox

import (
	"container/list"
	"crypto/sha1" //nolint:gosec // it makes an ID, as RFC 9562 has it for version 5
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// ReasonEventsDropped is the reason of the Event that tells of Events which were dropped to keep the bound.
const ReasonEventsDropped = "EventsDropped"

// gapEnds is for how long nothing may be dropped of a workload until the next is a gap of its own.
const gapEnds = 10 * time.Minute

// gap counts Events of a workload that were dropped.
type gap struct {
	Instance        target.Instance
	UID             types.UID // made of the workload and the first of them
	Normal, Warning int64
	First, Last     time.Time // of the Events' own times
	Dropped         time.Time // when the last was dropped
}

func (g gap) total() int64 { return g.Normal + g.Warning }

// report returns the Event that tells of the gap.
func (g gap) report() observe.Event {
	return observe.Event{
		Workload:        g.Instance,
		UID:             g.UID,
		ResourceVersion: strconv.FormatInt(g.total(), 10),
		Type:            corev1.EventTypeWarning,
		Reason:          ReasonEventsDropped,
		Message: fmt.Sprintf("%d Events (%d Normal, %d Warning) that happened between %s and %s were dropped, because the "+
			"agent could not deliver them and may keep no more: see --state-max-bytes",
			g.total(), g.Normal, g.Warning, g.First.UTC().Format(time.RFC3339), g.Last.UTC().Format(time.RFC3339)),
		Time:        g.Dropped,
		Dropped:     &observe.DroppedRange{Normal: g.Normal, Warning: g.Warning, First: g.First, Last: g.Last},
		Preexisting: true, // without a memory the same Event begins the same gap again
	}
}

// events are the Events that may be dropped, by type, and the gaps of those that were.
type events struct {
	normal, warning *list.List // of entries, the oldest first
	bytes           int64      // about what they take
	gaps            map[observe.Key]gap
	open            map[target.Instance]observe.Key // the latest gap of each workload
	total           int64                           // dropped since the outbox was made
}

func newEvents() events {
	return events{
		normal: list.New(), warning: list.New(), gaps: map[observe.Key]gap{}, open: map[target.Instance]observe.Key{},
	}
}

// add files an Event that is kept. What tells of a gap is never dropped.
func (s *events) add(e *entry, ev observe.Event) {
	s.remove(e)
	if _, isGap := s.gaps[e.key]; isGap {
		return
	}
	of := s.normal
	if ev.Type != corev1.EventTypeNormal {
		of = s.warning
	}
	const fixed = 4096 // what there is of it in memory besides its texts, here and on the way here: measured
	e.stored.bytes = int64(fixed + len(ev.Message) + len(ev.Reason) + 2*len(ev.Involved.Name))
	e.stored.place = of.PushBack(e)
	s.bytes += e.stored.bytes
}

func (s *events) remove(e *entry) {
	if e.stored.place == nil {
		return
	}
	s.normal.Remove(e.stored.place) // only the one that has it
	s.warning.Remove(e.stored.place)
	s.bytes -= e.stored.bytes
	e.stored.place, e.stored.bytes = nil, 0
}

// oldest returns what is to be dropped next: the oldest Normal Event, or else the oldest Warning; nil if there is none.
func (s *events) oldest() *entry {
	for _, of := range []*list.List{s.normal, s.warning} {
		for at := of.Front(); at != nil; at = at.Next() {
			if e := at.Value.(*entry); !e.isOut() {
				return e
			}
		}
	}
	return nil
}

// count adds an Event to its workload's gap, and returns that.
func (s *events) count(ev observe.Event, now time.Time) (observe.Key, gap) {
	key, open := s.open[ev.Workload]
	g, open := s.gaps[key], open && now.Sub(s.gaps[key].Dropped) < gapEnds
	if !open {
		g = gap{Instance: ev.Workload, UID: gapUID(ev), First: ev.Time, Last: ev.Time}
		key = observe.EventKey(g.UID)
		if old, again := s.gaps[key]; again { // it began with the same Event
			g = old
		}
		s.open[ev.Workload] = key
	}
	if ev.Type == corev1.EventTypeNormal {
		g.Normal++
	} else {
		g.Warning++
	}
	if ev.Time.Before(g.First) {
		g.First = ev.Time
	}
	if ev.Time.After(g.Last) {
		g.Last = ev.Time
	}
	g.Dropped = now
	s.gaps[key] = g
	s.total++
	return key, g
}

// gapUID is a UUID of version 5.
func gapUID(first observe.Event) types.UID {
	sum := sha1.Sum(fmt.Append(nil, ReasonEventsDropped, "/", first.Workload.Type, "/", first.Workload.ID, "/", first.UID)) //nolint:gosec // see above
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

func (s *events) dropped(id target.Instance) (n int64) {
	for _, g := range s.gaps {
		if g.Instance == id {
			n += g.total()
		}
	}
	return n
}

// forget drops the gaps of a workload.
func (s *events) forget(id target.Instance, memory Store) {
	delete(s.open, id)
	for key, g := range s.gaps {
		if g.Instance != id {
			continue
		}
		delete(s.gaps, key)
		if memory != nil {
			memory.Delete(gapTable, string(key))
		}
	}
}

// leastShare is the part of the bound that Events may take whatever else is kept: to drop them would not help.
const leastShare = 8

// shed drops Events until what is held keeps its bound.
func (o *Outbox) shed() {
	for o.config.MaxBytes > 0 && o.used() > o.config.MaxBytes && o.events.bytes > o.config.MaxBytes/leastShare {
		e := o.events.oldest()
		if e == nil {
			return
		}
		o.drop(e)
	}
}

// used is about how many bytes are held.
func (o *Outbox) used() int64 {
	if o.memory == nil {
		return o.events.bytes
	}
	return max(o.memory.Bytes(), o.events.bytes) // a memory may be one that keeps nothing
}

// drop gives up an Event that waits, or that was refused, and counts it in a gap, which is to be reported.
func (o *Outbox) drop(e *entry) {
	report := e.report
	if report == nil {
		report = e.dead.report
	}
	e.version, e.settled, e.dropped = report.Version(), true, true
	o.unqueue(e)
	o.unpend(e)
	o.bury(e, nil)
	key, g := o.events.count(report.(observe.Event), time.Now())
	o.put(gapTable, key, g)
	o.retire(e)
	o.offer(g.report())
}

// Dropped returns how many Events were dropped since the outbox was made.
func (o *Outbox) Dropped() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events.total
}
