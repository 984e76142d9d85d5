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
func TestOutbox_Oldest_LeavesOutWorkloadsThatAreRefused(t *testing.T) {
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
			if got := o.Oldest().Sub(begin); got != tt.oldest {
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
