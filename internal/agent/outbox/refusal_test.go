package outbox

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

var errUnknown = errors.New("the control plane has no WorkloadInstance 1")

// A report that waits for a change of its workload is pending, and no delay of the deliveries of others.
func TestOutbox_DelayedSince_LeavesOutWorkloadsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		refusal target.Refusal
		reason  string
		oldest  time.Duration // after the refused report
	}{
		{target.UnknownInstance, "all reports of the instance wait for it", 2 * time.Minute},
		{target.NotAssigned, "all reports of the instance wait for it", 2 * time.Minute},
		{target.UnknownResource, "another report of the instance is delayed", time.Minute},
		{target.QuotaExceeded, "it is a delay of the cluster", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := New(paced, nil)
			begin := time.Now()
			item := takeAll(t, o, "a")["a"]
			o.Refuse(item, tt.refusal, errUnknown)
			time.Sleep(30 * time.Second)
			o.Offer(in("a", "behind", "1")) // waits for the refused report of its group
			time.Sleep(30 * time.Second)
			o.Offer(at("b", "1"))
			time.Sleep(time.Minute)
			o.Offer(report{"c", "c", "1", other})
			if got := o.DelayedSince().Sub(begin); got != tt.oldest {
				t.Errorf("%s: the oldest is %s after the refused report, want %s: %s", tt.refusal, got, tt.oldest, tt.reason)
			}
			expectPending(t, o, 4, 0)
			if since := o.Progress(shop).Since; !since.Equal(begin) {
				t.Errorf("%s: the workload has a pending report since %s, want %s", tt.refusal, since, begin)
			}
		})
	}
}

// The refusal of an instance is not about the instance that the object belongs to now, and its wait neither.
func TestOutbox_RefuseThenOfferForAnotherInstance_ForgetsTheRefusal(t *testing.T) {
	moved := report{"a", "a", "2", other}
	for _, tt := range []struct {
		reason string
		refuse func(*Outbox, Item)
	}{
		{"after the refusal", func(o *Outbox, item Item) {
			o.Refuse(item, target.UnknownInstance, errUnknown)
			o.Offer(moved)
		}},
		{"while the refused report is sent", func(o *Outbox, item Item) {
			o.Offer(moved)
			o.Refuse(item, target.UnknownInstance, errUnknown)
		}},
		{"and the workload of the refused report is gone", func(o *Outbox, item Item) {
			o.Offer(moved)
			o.ForgetInstance(shop)
			o.Refuse(item, target.UnknownInstance, errUnknown)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := New(paced, nil)
			item := takeAll(t, o, "a")["a"]
			tt.refuse(o, item)
			if p := o.Progress(other); p.Refusal != "" || p.LastError != "" || p.Pending != 1 {
				t.Errorf("%s: the progress is %+v, want a pending report without a refusal", tt.reason, p)
			}
			item, waited := next(t, o)
			if item.Report != moved || waited != 0 {
				t.Errorf("%s: %v of %s is sent after %s, want that of %s at once", tt.reason, item.Report, item.Report.Instance(), waited, other)
			}
			o.Refuse(item, target.UnknownResource, errSend)
			if p := o.Progress(other); p.Refusal != target.UnknownResource || p.LastError != errSend.Error() {
				t.Errorf("%s: the progress is %+v, want the refusal of now", tt.reason, p)
			}
		})
	}
}

// Somebody corrects the ID of a resource: its Events do not wait for the ID from before.
func TestOutbox_RefuseThenOfferForAnotherResource_IsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		wrong := observe.Event{Workload: shop, UID: "a", ResourceVersion: "1", ResourceID: 7}
		right := wrong
		right.ResourceID = 8
		o.Offer(wrong)
		item, _ := next(t, o)
		o.Refuse(item, target.UnknownResource, errUnknown)
		o.Offer(right)
		if p := o.Progress(shop); p.Refusal != "" || p.Pending != 1 {
			t.Errorf("the progress is %+v, want a pending report without a refusal", p)
		}
		if item, waited := next(t, o); item.Report != right || waited != 0 {
			t.Errorf("%v is sent after %s, want %v at once", item.Report, waited, right)
		}
	})
}

// While the control plane does not know an instance, one of its reports is tried again, and its Events wait for that.
func TestOutbox_Refuse_EventsOfInstanceWaitForOneReport(t *testing.T) {
	for _, refusal := range []target.Refusal{target.UnknownInstance, target.NotAssigned} {
		synctest.Test(t, func(t *testing.T) {
			o := New(paced, nil)
			const n = 100
			for i := range n {
				o.Offer(typed(i, "Warning"))
			}
			first, _ := next(t, o)
			second, _ := next(t, o)
			o.Refuse(first, refusal, errUnknown)
			o.Refuse(second, refusal, errUnknown)
			for range 5 {
				item, waited := next(t, o)
				if item.Report != first.Report || waited == 0 {
					t.Errorf("%s: %s is sent after %s, want %s after a wait", refusal, item.Report, waited, first.Report)
				}
				expectNothing(t, o)
				o.Refuse(item, refusal, errUnknown)
			}
			o.Offer(operation("conf", "1")) // may be accepted: it is about the row of its resource
			o.Offer(report{"c", "c", "1", other})
			for range 2 {
				item, waited := next(t, o)
				if _, isEvent := item.Report.(observe.Event); isEvent || waited != 0 {
					t.Errorf("%s: %s is sent after %s, want a report that is no Event at once", refusal, item.Report, waited)
				}
				o.Refuse(item, target.UnknownResource, errUnknown)
			}
			item, _ := next(t, o)
			for item.Report != first.Report {
				o.Refuse(item, target.UnknownResource, errUnknown)
				item, _ = next(t, o)
			}
			o.Ack(item, Receipt{RowID: 1})
			sent := 1
			for item, ok := tryTake(t, o); ok; item, ok = tryTake(t, o) {
				o.Ack(item, Receipt{RowID: 1})
				sent++
			}
			if sent < n-1 { // the second one has a wait of its own
				t.Errorf("%s: %d Events are sent after the first was accepted, want %d", refusal, sent, n-1)
			}
		})
	}
}

// The workload is gone whose report the others waited for, or the object belongs to another one now.
func TestOutbox_RefuseThenProbeIsGone_OthersAreSent(t *testing.T) {
	for reason, end := range map[string]func(*Outbox, observe.Event){
		"the Event is cancelled": func(o *Outbox, probe observe.Event) { o.Cancel(probe.Key()) },
		"the Event belongs to another workload": func(o *Outbox, probe observe.Event) {
			probe.Workload, probe.ResourceVersion = other, "2"
			o.Offer(probe)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := New(paced, nil)
			for i := range 3 {
				o.Offer(typed(i, "Warning"))
			}
			probe, _ := next(t, o)
			o.Refuse(probe, target.UnknownInstance, errUnknown)
			expectNothing(t, o)
			end(o, probe.Report.(observe.Event))
			if item, waited := next(t, o); item.Report == probe.Report || waited != 0 {
				t.Errorf("%s: %s is sent after %s, want another Event at once", reason, item.Report, waited)
			}
		})
	}
}
