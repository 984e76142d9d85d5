package outbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// filteredAmong returns the Events about a filter.
func filteredAmong(events []observe.Event) (filtered []observe.Event) {
	for _, ev := range events {
		if ev.Reason == ReasonEventsFiltered {
			filtered = append(filtered, ev)
		}
	}
	return filtered
}

// takeEvents accepts what is pending now, and returns the Events in their order.
func takeEvents(t *testing.T, o *Outbox) (out []observe.Event) {
	t.Helper()
	for {
		item, ok := tryTake(t, o)
		if !ok {
			return out
		}
		if ev, isEvent := item.Report.(observe.Event); isEvent {
			out = append(out, ev)
		}
		o.Ack(item, Receipt{RowID: 1})
	}
}

// Dropped Events are counted in one report about the filter, a minute after the first. A repeat of the same version does not count.
func TestOutbox_Drop_CountsOnceInOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, records{})
		for range 3 {
			for i := range 50 {
				if counted := o.Drop(typed(i, "Normal"), "noise"); counted && o.Knows(typed(i, "Normal").Key()) == false {
					t.Errorf("Event %d was counted, and is not known", i)
				}
			}
		}
		o.Drop(typed(60, "Warning"), "noise")
		o.Drop(typed(60, "Normal"), "other")
		o.Offer(typed(0, "Normal")) // it was dropped in this version
		if events := takeEvents(t, o); len(events) > 0 || o.Pending() > 0 {
			t.Errorf("%v are sent at once, want none", events)
		}
		time.Sleep(filteredReportDelay)
		events := takeEvents(t, o)
		if len(events) != 2 || len(filteredAmong(events)) != 2 {
			t.Fatalf("the reports are %v, want one for each filter", events)
		}
		if strings.Contains(events[0].Message, "other") {
			events[0], events[1] = events[1], events[0]
		}
		noise := events[0]
		want := "51 Events (50 Normal, 1 Warning) that happened between "
		if !strings.HasPrefix(noise.Message, want) || !strings.Contains(noise.Message, `the filter "noise"`) || noise.Type != "Normal" {
			t.Errorf("the report is %+v, want a Normal Event whose message begins with %q", noise, want)
		}
		if d := noise.Dropped; d == nil || d.Normal != 50 || d.Warning != 1 || !d.First.Equal(typed(0, "Normal").Time) || !d.Last.Equal(typed(60, "Warning").Time) {
			t.Errorf("the range is %+v", d)
		}
		if n, dropped := o.Dropped(), o.DeliveryCounts(shop).Dropped; n != 0 || dropped != 0 {
			t.Errorf("%d and %d count as lost, want none", n, dropped)
		}

		// Further ones change the same row.
		o.Drop(typed(70, "Normal"), "noise")
		time.Sleep(filteredReportDelay)
		if events := takeEvents(t, o); len(events) != 1 || events[0].UID != noise.UID || events[0].Dropped.Normal != 51 {
			t.Errorf("the next report is %v, want another version of the first", events)
		}
	})
}

// The next process knows what was dropped, and reports a count that this one has not reported.
func TestOutbox_Drop_SurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := records{}
		o := New(Config{}, store)
		for i := range 3 {
			o.Drop(typed(i, "Normal"), "noise")
		}
		o = New(Config{}, store)
		for i := range 5 {
			if counted := o.Drop(typed(i, "Normal"), "noise"); counted != (i >= 3) {
				t.Errorf("Event %d counted: %t", i, counted)
			}
		}
		if !o.Has(typed(0, "Normal")) || o.State(typed(0, "Normal")).Phase != Rejected {
			t.Error("a dropped Event is to be sent or compared after the restart")
		}
		o.Close()
		items, err := o.NextBatch(t.Context(), 10)
		if err != nil || len(items) != 1 || items[0].Report.(observe.Event).Dropped.Normal != 5 {
			t.Errorf("at the end %v are sent, %v, want the report about 5 Events", items, err)
		}
	})
}

// A new version of an Event that still waits is sent in its place. One of an Event that was reported is dropped, and its row stays.
func TestOutbox_Drop_OfReportedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, records{})
		o.Offer(event("a", "1"))
		if o.Drop(event("a", "2"), "noise") {
			t.Error("the new version of a waiting Event was dropped")
		}
		if events := takeEvents(t, o); len(events) != 1 || events[0].ResourceVersion != "2" {
			t.Errorf("%v are sent, want the second version", events)
		}
		if !o.Drop(event("a", "3"), "noise") {
			t.Error("the new version of a reported Event was not dropped")
		}
		if state := o.State(event("a", "3")); state.Receipt.RowID != 1 {
			t.Errorf("the receipt is %+v, want that of the row", state.Receipt)
		}
		o.Offer(event("a", "4")) // the filter is gone
		if events := takeEvents(t, o); len(events) != 1 || events[0].ResourceVersion != "4" {
			t.Errorf("%v are sent, want the fourth version", events)
		}
	})
}

func TestOutbox_Drop_ForgottenInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, records{})
		o.Declare(shop)
		o.Drop(event("a", "1"), "noise")
		o.ForgetInstance(shop)
		if events := takeEvents(t, o); len(events) != 1 || events[0].Dropped.Warning != 1 {
			t.Errorf("%v are sent for an instance that goes, want the count at once", events)
		}
	})
}

// A protocol without a place for an Event would not send it, so it is neither counted nor known.
func TestOutbox_Drop_NoPlaceInProtocol(t *testing.T) {
	ev := event("a", "1")
	o := New(Config{Protocol: without(ev.Key())}, records{})
	if !o.Has(ev) || o.Drop(ev, "noise") || o.Knows(ev.Key()) {
		t.Error("an Event without a place in the protocol is offered or counted")
	}
}

func BenchmarkOutbox_Drop(b *testing.B) {
	o := New(Config{}, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Drop(event("a", fmt.Sprint(i)), "noise")
	}
}
