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

// ReasonEventsDropped is the reason of the Event that reports dropped Events.
const ReasonEventsDropped = "EventsDropped"

// droppedRangeEnds is the time without another dropped Event of a workload after which a new range begins.
const droppedRangeEnds = 10 * time.Minute

// droppedRange counts Events of a workload that were dropped. It is a record of the store.
type droppedRange struct {
	Instance        target.Instance
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
	return observe.Event{
		Workload:        d.Instance,
		UID:             d.UID,
		ResourceVersion: strconv.FormatInt(d.total(), 10),
		Type:            corev1.EventTypeWarning,
		Reason:          ReasonEventsDropped,
		Message: fmt.Sprintf("%d Events (%d Normal, %d Warning) that happened between %s and %s were dropped, because the "+
			"agent could not deliver them and may keep no more: see --state-max-bytes",
			d.total(), d.Normal, d.Warning, d.First.UTC().Format(time.RFC3339), d.Last.UTC().Format(time.RFC3339)),
		Time:       d.Dropped,
		Dropped:    &observe.DroppedRange{Normal: d.Normal, Warning: d.Warning, First: d.First, Last: d.Last},
		MayHaveRow: true, // a process without the records begins the same range with the same Event
	}
}

// droppedRanges are the dropped Events of all workloads.
type droppedRanges struct {
	ranges map[observe.Key]droppedRange // by the key of the Event that reports the range
	latest map[target.Instance]observe.Key
	total  int64 // dropped since the outbox was made
}

func newDroppedRanges() droppedRanges {
	return droppedRanges{ranges: map[observe.Key]droppedRange{}, latest: map[target.Instance]observe.Key{}}
}

// restore takes back a record of the store.
func (d *droppedRanges) restore(key observe.Key, r droppedRange) {
	d.ranges[key] = r
	if latest := d.ranges[d.latest[r.Instance]]; r.Dropped.After(latest.Dropped) {
		d.latest[r.Instance] = key
	}
}

// has reports whether a key is that of the Event about a range. Such Events are never evicted.
func (d *droppedRanges) has(key observe.Key) bool {
	_, ok := d.ranges[key]
	return ok
}

// add counts an Event in the workload's latest range, or in a new one if that has ended.
func (d *droppedRanges) add(ev observe.Event, now time.Time) (observe.Key, droppedRange) {
	key, ok := d.latest[ev.Workload]
	r := d.ranges[key]
	if !ok || now.Sub(r.Dropped) >= droppedRangeEnds {
		r = droppedRange{Instance: ev.Workload, UID: droppedRangeUID(ev), First: ev.Time, Last: ev.Time}
		key = observe.EventKey(r.UID)
		if before, again := d.ranges[key]; again { // it began with the same Event
			r = before
		}
		d.latest[ev.Workload] = key
	}
	r.add(ev, now)
	d.ranges[key] = r
	d.total++
	return key, r
}

// droppedRangeUID is a UUID of version 5.
func droppedRangeUID(first observe.Event) types.UID {
	sum := sha1.Sum(fmt.Append(nil, ReasonEventsDropped, "/", first.Workload.Type, "/", first.Workload.ID, "/", first.UID)) //nolint:gosec // see above
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// count returns how many Events of a workload were dropped.
func (d *droppedRanges) count(id target.Instance) (n int64) {
	for _, r := range d.ranges {
		if r.Instance == id {
			n += r.total()
		}
	}
	return n
}

// forget removes the ranges of a workload, and returns their keys.
func (d *droppedRanges) forget(id target.Instance) (keys []observe.Key) {
	delete(d.latest, id)
	for key, r := range d.ranges {
		if r.Instance == id {
			delete(d.ranges, key)
			keys = append(keys, key)
		}
	}
	return keys
}
