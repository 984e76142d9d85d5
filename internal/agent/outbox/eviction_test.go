package outbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// typed returns an Event of a type at minute i.
func typed(i int, typ string) observe.Event {
	ev := event(types.UID(fmt.Sprint(typ, i)), "1")
	ev.Type = typ
	ev.Time = ev.Time.Add(time.Duration(i) * time.Minute)
	return ev
}

// drain accepts all pending reports, and returns the Events.
func drain(t *testing.T, o *Outbox) map[types.UID]observe.Event {
	t.Helper()
	out := map[types.UID]observe.Event{}
	for {
		item, ok := tryTake(t, o)
		if !ok {
			return out
		}
		if ev, isEvent := item.Report.(observe.Event); isEvent {
			out[ev.UID] = ev
		}
		o.Ack(item, Receipt{RowID: 1})
	}
}

func gapsAmong(events map[types.UID]observe.Event) (gaps []observe.Event) {
	for uid, ev := range events {
		if ev.Reason == ReasonEventsDropped {
			gaps = append(gaps, ev)
			delete(events, uid)
		}
	}
	return gaps
}

func TestOutbox_Eviction_OldestNormalEventsFirst(t *testing.T) {
	for name, memory := range map[string]Store{"with a memory": records{}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			o := New(Config{MaxBytes: 256 << 10}, memory)
			o.Offer(operation("conf", "1"))
			const n = 200
			for i := range n {
				o.Offer(typed(i, "Normal"))
				if i%10 == 0 {
					o.Offer(typed(i, "Warning"))
				}
				if used := o.usedBytes(); used > 256<<10 {
					t.Fatalf("%d bytes are used", used)
				}
			}
			dropped := o.Dropped()
			if dropped == 0 || o.Progress(shop).Dropped != dropped {
				t.Fatalf("%d are dropped, shown is %+v", dropped, o.Progress(shop))
			}
			events := drain(t, o)
			gaps := gapsAmong(events)
			if len(gaps) != 1 {
				t.Fatalf("there are %d gaps", len(gaps))
			}
			want := fmt.Sprintf("%d Events (%d Normal, 0 Warning) that happened between %s and %s were dropped", dropped, dropped,
				typed(0, "").Time.Format(time.RFC3339), typed(int(dropped)-1, "").Time.Format(time.RFC3339))
			if !strings.HasPrefix(gaps[0].Message, want) {
				t.Errorf("the Events about dropped Events are %q, want %q", gaps[0].Message, want)
			}
			if int64(len(events)) != n+n/10-dropped {
				t.Errorf("%d Events were sent and %d dropped, of %d", len(events), dropped, n+n/10)
			}
			for i := range n {
				if _, sent := events[typed(i, "Normal").UID]; sent != (int64(i) >= dropped) {
					t.Errorf("Normal Event %d was sent: %t", i, sent)
				}
			}
		})
	}
}

func TestOutbox_Eviction_WarningsAfterNormalEvents(t *testing.T) {
	o := New(Config{MaxBytes: 32 << 10}, nil)
	for i := range 100 {
		o.Offer(typed(i, "Warning"))
	}
	gaps := gapsAmong(drain(t, o))
	if len(gaps) != 1 || !strings.Contains(gaps[0].Message, fmt.Sprintf("(0 Normal, %d Warning)", o.Dropped())) {
		t.Errorf("the Events about dropped Events are %+v", gaps)
	}
}

func TestOutbox_Eviction_SparesState(t *testing.T) {
	o := New(Config{MaxBytes: 1}, records{})
	o.Offer(operation("conf", "1"))
	o.Offer(operation("gone", ""))
	o.Offer(event("a", "1"))
	for range 3 { // both operations, and the Event
		o.Ack(take(t, o), Receipt{})
	}
	expectNothing(t, o)
}

func TestOutbox_Restart_KeepsDroppedRanges(t *testing.T) {
	kept := records{}
	o := New(Config{MaxBytes: 16 << 10}, kept)
	for i := range 50 {
		o.Offer(typed(i, "Normal"))
	}
	dropped := o.Dropped()
	again := New(Config{MaxBytes: 16 << 10}, kept)
	if got := again.Progress(shop).Dropped; got != dropped {
		t.Errorf("shown are %d dropped, want %d", got, dropped)
	}
	gaps := gapsAmong(drain(t, again))
	if len(gaps) != 1 || gaps[0].ResourceVersion != fmt.Sprint(dropped) {
		t.Errorf("the Events about dropped Events are %+v", gaps)
	}
	again.ForgetInstance(shop)
	if len(kept[droppedTable]) > 0 {
		t.Errorf("kept are %v", kept[droppedTable])
	}
}

func TestOutbox_Eviction_BeginsANewRangeAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{MaxBytes: 8 << 10}, nil)
		uids := map[types.UID]bool{}
		for round := range 3 {
			for i := range 30 {
				o.Offer(typed(100*round+i, "Normal"))
			}
			for _, g := range gapsAmong(drain(t, o)) {
				uids[g.UID] = true
			}
			if want := 1 + round/2; len(uids) != want {
				t.Errorf("after round %d there were %d gaps, want %d", round, len(uids), want)
			}
			time.Sleep(time.Duration(1+round) * droppedRangeEnds * 2 / 3)
		}
	})
}

func TestOutbox_Eviction_SparesEventsBeingSent(t *testing.T) {
	o := New(Config{MaxBytes: 16 << 10}, nil)
	o.Offer(typed(0, "Normal"))
	out := take(t, o)
	for i := range 30 {
		o.Offer(typed(i+1, "Normal"))
	}
	o.Ack(out, Receipt{RowID: 1})
	if got := o.State(out.Report).Phase; got != Settled {
		t.Errorf("phase %d, want Settled", got)
	}
}

func TestOutbox_Eviction_IncludesDeadLetters(t *testing.T) {
	o := New(Config{MaxBytes: 16 << 10}, records{})
	for i := range 100 {
		o.Offer(typed(i, "Normal"))
		if item := take(t, o); item.Report.(observe.Event).Reason != ReasonEventsDropped {
			o.Reject(item, errSend)
		} else {
			o.Ack(item, Receipt{RowID: 1})
		}
	}
	if o.DeadLetters() == 0 || o.DeadLetters() > 50 || o.Dropped() == 0 {
		t.Errorf("%d dead letters, %d dropped", o.DeadLetters(), o.Dropped())
	}
}

func TestOutbox_Eviction_SameFirstEventContinuesTheRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{MaxBytes: 8 << 10}, nil)
		for i := range 30 {
			o.Offer(typed(i, "Normal"))
		}
		drain(t, o)
		dropped := o.Dropped()
		time.Sleep(2 * droppedRangeEnds)
		for i := range 30 { // the first of them again
			ev := typed(i, "Normal")
			ev.ResourceVersion = "2"
			o.Offer(ev)
		}
		gaps := gapsAmong(drain(t, o))
		if len(gaps) != 1 || gaps[0].ResourceVersion != fmt.Sprint(o.Dropped()) || o.Dropped() <= dropped {
			t.Errorf("%d and then %d were dropped, and the Events about dropped Events are %+v", dropped, o.Dropped(), gaps)
		}
	})
}

// Evicting Events would not make the records of delivered Events smaller.
func TestOutbox_Eviction_SparesDeliveredEvents(t *testing.T) {
	o := New(Config{MaxBytes: 64 << 10}, records{})
	for i := range 1000 {
		o.Offer(typed(i, "Normal"))
		o.Ack(take(t, o), Receipt{RowID: int64(i)})
	}
	if o.usedBytes() <= 64<<10 || o.Dropped() > 0 {
		t.Errorf("%d bytes are used, and %d were dropped", o.usedBytes(), o.Dropped())
	}
}

func TestEvictionQueue_Next(t *testing.T) {
	q, x := newEvictionQueue(), newIndex()
	add := func(uid types.UID, kind string) *entry {
		ev := event(uid, "1")
		ev.Type = kind
		e := x.getOrAdd(ev.Key(), ev.OrderingKey())
		q.add(e, ev, true)
		return e
	}
	warning, first, second := add("w", "Warning"), add("a", "Normal"), add("b", "Normal")
	bytes := q.bytes
	if q.next() != first {
		t.Error("next is not the oldest Normal Event")
	}
	first.group.inFlight = first
	if q.next() != second {
		t.Error("next is an Event that is being sent")
	}
	add("b", "Normal") // a repeat replaces the earlier one
	if q.bytes != bytes {
		t.Errorf("%d bytes after a repeat, want %d", q.bytes, bytes)
	}
	q.remove(second)
	q.remove(second)
	if q.next() != warning {
		t.Error("next is not the Warning, although no Normal Event is left")
	}
	q.remove(first)
	q.remove(warning)
	if q.next() != nil || q.bytes != 0 {
		t.Errorf("an empty queue has %d bytes", q.bytes)
	}
}

// A workload with many Events does not displace those of others, whatever their type and age.
func TestOutbox_Eviction_SparesOtherInstances(t *testing.T) {
	o := New(Config{MaxBytes: 256 << 10}, nil)
	for i := range 10 {
		for _, typ := range []string{"Normal", "Warning"} {
			ev := typed(i, typ)
			ev.UID, ev.Workload = "of-other-"+ev.UID, other
			o.Offer(ev)
		}
	}
	for i := range 500 {
		o.Offer(typed(i, "Warning"))
	}
	if dropped := o.Progress(other).Dropped; dropped != 0 {
		t.Errorf("%d Events of the other workload were dropped, want none", dropped)
	}
	if used := o.usedBytes(); o.Dropped() == 0 || used > 256<<10 {
		t.Errorf("%d Events were dropped, and %d bytes are used", o.Dropped(), used)
	}
	drain(t, o)
	if o.evictable.bytes != 0 || len(o.evictable.shares) != 0 || len(o.evictable.byInstance) != 0 {
		t.Errorf("the eviction queue has %d bytes of %d instances, want none", o.evictable.bytes, len(o.evictable.shares))
	}
}

// Anybody may declare thousands of instances that the control plane does not know, with fewer Events each than an honest one has.
func TestOutbox_Eviction_UnconfirmedInstancesFirst(t *testing.T) {
	o := New(Config{MaxBytes: 256 << 10}, nil)
	confirmed := observe.Status{Workload: other, Status: "Healthy"}
	o.Offer(confirmed)
	o.Ack(take(t, o), Receipt{})
	for i := range 20 {
		ev := typed(i, "Normal")
		ev.Workload = other
		o.Offer(ev)
	}
	for i := range 500 {
		ev := typed(i, "Warning")
		ev.Workload.ID = int64(1000 + i/2)
		o.Offer(ev)
	}
	if dropped := o.Progress(other).Dropped; dropped != 0 || o.Dropped() == 0 {
		t.Errorf("%d of %d dropped Events are of the confirmed instance, want none", dropped, o.Dropped())
	}
}
