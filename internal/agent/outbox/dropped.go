package outbox

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 prescribes SHA-1 for UUIDs of version 5
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Reasons of the Events that report dropped Events.
const (
	ReasonEventsDropped  = "EventsDropped"  // to keep the bound
	ReasonEventsFiltered = "EventsFiltered" // by a filter
)

const (
	// droppedRangeEnds is the time without another dropped Event of a workload after which a new range begins.
	droppedRangeEnds = 10 * time.Minute
	// filteredRangeEnds is that time for Events that a filter drops. A new range is a row in the control plane.
	filteredRangeEnds = 24 * time.Hour
	// filteredReportDelay is how long the report of a filter's range waits for further Events. Otherwise an Event that is dropped would
	// cost the same as one that is reported.
	filteredReportDelay = time.Minute
)

// droppedRange counts Events of a workload that were dropped. It is a record of the store.
type droppedRange struct {
	Instance        target.Instance
	Filter          string    `json:",omitempty"` // the name of the filter that drops them; empty for Events dropped to keep the bound
	UID             types.UID // made of the workload and the first of the Events
	Normal, Warning int64
	First, Last     time.Time // of the Events' own times
	Dropped         time.Time // when the last of them was dropped
}

func (d droppedRange) total() int64 { return d.Normal + d.Warning }

// add counts an Event.
func (d *droppedRange) add(ev observe.Event, now time.Time) {
	if ev.Type == corev1.EventTypeNormal {
		d.Normal++
	} else {
		d.Warning++
	}
	if ev.Time.Before(d.First) {
		d.First = ev.Time
	}
	if ev.Time.After(d.Last) {
		d.Last = ev.Time
	}
	d.Dropped = now
}

// report returns the Event that reports the range.
func (d droppedRange) report() observe.Event {
	level, reason := corev1.EventTypeWarning, ReasonEventsDropped
	why := "were dropped, because the agent could not deliver them and may keep no more: see --state-max-bytes"
	if d.Filter != "" {
		level, reason = corev1.EventTypeNormal, ReasonEventsFiltered
		why = fmt.Sprintf("were left out by the filter %q of the agent", d.Filter)
	}
	return observe.Event{
		Workload:        d.Instance,
		UID:             d.UID,
		ResourceVersion: strconv.FormatInt(d.total(), 10),
		Type:            level,
		Reason:          reason,
		Message: fmt.Sprintf("%d Events (%d Normal, %d Warning) that happened between %s and %s %s",
			d.total(), d.Normal, d.Warning, d.First.UTC().Format(time.RFC3339), d.Last.UTC().Format(time.RFC3339), why),
		Time:       d.Dropped,
		Dropped:    &observe.DroppedRange{Normal: d.Normal, Warning: d.Warning, First: d.First, Last: d.Last},
		MayHaveRow: d.Filter == "", // a process without the records begins the same range with the same Event
	}
}

// droppedRanges are the dropped Events of all workloads.
type droppedRanges struct {
	ranges map[observe.Key]droppedRange // by the key of the Event that reports the range
	latest map[rangeOwner]observe.Key
	total  int64 // dropped to keep the bound since the outbox was made
	// waiting are the ranges of filters whose reports wait until due.
	waiting map[observe.Key]struct{}
	due     time.Time // zero if none waits
}

// rangeOwner has one current range.
type rangeOwner struct {
	instance target.Instance
	filter   string
}

func (d droppedRange) owner() rangeOwner { return rangeOwner{d.Instance, d.Filter} }

func newDroppedRanges() droppedRanges {
	return droppedRanges{ranges: map[observe.Key]droppedRange{}, latest: map[rangeOwner]observe.Key{}, waiting: map[observe.Key]struct{}{}}
}

// restore takes back a record of the store. The last process may not have reported the range of a filter.
func (d *droppedRanges) restore(key observe.Key, r droppedRange, now time.Time) {
	d.ranges[key] = r
	if latest := d.ranges[d.latest[r.owner()]]; r.Dropped.After(latest.Dropped) {
		d.latest[r.owner()] = key
	}
	if r.Filter != "" {
		d.reportLater(key, now)
	}
}

// reportLater lets the report of a range wait for further Events. It returns true if no other one waits.
func (d *droppedRanges) reportLater(key observe.Key, now time.Time) (first bool) {
	d.waiting[key] = struct{}{}
	if first = d.due.IsZero(); first {
		d.due = now.Add(filteredReportDelay)
	}
	return first
}

// takeDue returns the ranges whose reports have waited, all of them if the outbox is closed.
func (d *droppedRanges) takeDue(now time.Time, closed bool) (due []droppedRange) {
	if d.due.IsZero() || d.due.After(now) && !closed {
		return nil
	}
	for key := range d.waiting {
		due = append(due, d.ranges[key])
	}
	clear(d.waiting)
	d.due = time.Time{}
	return due
}

// has reports whether a key is that of the Event about a range. Such Events are never evicted.
func (d *droppedRanges) has(key observe.Key) bool {
	_, ok := d.ranges[key]
	return ok
}

// takeWaitingOf returns the ranges of an instance whose reports wait.
func (d *droppedRanges) takeWaitingOf(id target.Instance) (waiting []droppedRange) {
	for key := range d.waiting {
		if r := d.ranges[key]; r.Instance == id {
			waiting = append(waiting, r)
			delete(d.waiting, key)
		}
	}
	return waiting
}

// add counts an Event in the latest range of the workload and the filter, or in a new one if that has ended.
func (d *droppedRanges) add(ev observe.Event, filter string, now time.Time) (observe.Key, droppedRange) {
	owner, ends := rangeOwner{ev.Workload, filter}, droppedRangeEnds
	if filter != "" {
		ends = filteredRangeEnds
	}
	key, ok := d.latest[owner]
	r := d.ranges[key]
	if !ok || now.Sub(r.Dropped) >= ends {
		r = droppedRange{Instance: ev.Workload, Filter: filter, UID: droppedRangeUID(ev, filter, now), First: ev.Time, Last: ev.Time}
		key = observe.EventKey(r.UID)
		if before, again := d.ranges[key]; again { // it began with the same Event
			r = before
		}
		d.latest[owner] = key
	}
	r.add(ev, now)
	d.ranges[key] = r
	if filter == "" {
		d.total++
	}
	return key, r
}

// droppedRangeUID is a UUID of version 5. A process without the records has another one for a range of a filter: its count begins at 0.
func droppedRangeUID(first observe.Event, filter string, now time.Time) types.UID {
	name := fmt.Append(nil, ReasonEventsDropped, "/", first.Workload.Type, "/", first.Workload.ID, "/", first.UID)
	if filter != "" {
		name = fmt.Append(name, "/", filter, "/", now.UnixNano())
	}
	sum := sha1.Sum(name) //nolint:gosec // see above
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// count returns how many Events of a workload were dropped to keep the bound.
func (d *droppedRanges) count(id target.Instance) (n int64) {
	for _, r := range d.ranges {
		if r.Instance == id && r.Filter == "" {
			n += r.total()
		}
	}
	return n
}

// forget removes the ranges of a workload, and returns their keys.
func (d *droppedRanges) forget(id target.Instance) (keys []observe.Key) {
	for key, r := range d.ranges {
		if r.Instance == id {
			delete(d.latest, r.owner())
			delete(d.ranges, key)
			delete(d.waiting, key)
			keys = append(keys, key)
		}
	}
	return keys
}

// Drop settles an Event without a report, because a filter leaves it out. It counts the Event in the report about the filter, which is
// offered later. If an earlier version of the Event is still to be sent, this one is sent in its place, which costs nothing more. It
// returns true if the Event was counted.
func (o *Outbox) Drop(ev observe.Event, filter string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.protocol.takes(ev) {
		return false
	}
	if a := o.accounts[ev.Workload]; a != nil {
		o.setDeclared(ev.Workload, a)
	}
	e := o.entryOf(ev)
	version := o.protocol.version(ev)
	if !e.isIdle() || e.ended(version) {
		o.offer(ev)
		return false
	}
	e.forgets, e.restored = false, false
	o.setDead(e, nil)
	e.end(version, dropped)
	o.persistence.saveReceipt(e)
	o.gc(e)
	now := time.Now()
	key, counted := o.dropped.add(ev, filter, now)
	o.persistence.saveDropped(key, counted)
	if o.dropped.reportLater(key, now) {
		o.wakeTaker() // takers wait until the report is due
	}
	return true
}

// offerFilteredOf offers the reports about filters of an instance that is going.
func (o *Outbox) offerFilteredOf(id target.Instance) {
	for _, r := range o.dropped.takeWaitingOf(id) {
		o.offer(r.report())
	}
}

// offerFiltered offers the reports about filters whose wait has ended.
func (o *Outbox) offerFiltered(now time.Time) {
	for _, r := range o.dropped.takeDue(now, o.closed) {
		o.offer(r.report())
	}
}
