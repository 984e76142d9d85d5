package outbox

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

func expectRefused(t *testing.T, o *Outbox, n int) {
	t.Helper()
	p := o.Progress(shop)
	if o.DeadLetters() != n || p.Rejected != int64(n) || len(p.Rejections) != min(n, maxRejections) {
		t.Errorf("%d dead letters, shown is %+v; want %d", o.DeadLetters(), p, n)
	}
}

func TestOutbox_RejectThenOfferNewer_SendsAgain(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(event("a", "1"))
	o.Reject(take(t, o), errSend)
	expectRefused(t, o, 1)
	o.Offer(event("a", "1"))
	expectNothing(t, o)
	o.Offer(event("a", "2"))
	expectRefused(t, o, 0)
	o.Ack(take(t, o), Receipt{})
	expectRefused(t, o, 0)
}

func TestOutbox_RetryRejected_SendsAgain(t *testing.T) {
	for name, r := range map[string]observe.Report{
		"an Event": event("a", "1"), "a deletion": operation("conf", ""), "an operation": operation("conf", "1"),
	} {
		t.Run(name, func(t *testing.T) {
			o := New(Config{}, nil)
			o.Offer(r)
			o.Forget(r.Key())
			o.Reject(take(t, o), errSend)
			o.RetryRejected(other)
			expectNothing(t, o)
			o.RetryRejected(shop)
			expectRefused(t, o, 0)
			o.Ack(expectTake(t, o, r.String()), Receipt{})
			expectNothing(t, o)
		})
	}
}

func TestOutbox_Restart_KeepsDeadLetters(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	for _, r := range []observe.Report{event("a", "1"), operation("conf", "1")} {
		o.Offer(r)
		o.Reject(take(t, o), errSend)
	}
	again := New(Config{}, kept)
	expectRefused(t, again, 2)
	if p := again.Progress(shop); p.Rejections[0].Reason != errSend.Error() {
		t.Errorf("shown is %+v", p)
	}
	again.Offer(event("a", "1"))
	again.Offer(operation("conf", "1"))
	expectNothing(t, again)
	again.RetryRejected(shop)
	for range 2 {
		again.Ack(take(t, again), Receipt{})
	}
	expectRefused(t, again, 0)
	if len(kept[deadTable]) > 0 {
		t.Errorf("kept are %v", kept[deadTable])
	}
}

func TestOutbox_RetryRejected_WithoutContent_WaitsForOffer(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(operation("conf", "1"))
	o.Reject(take(t, o), errSend)
	again := New(Config{}, kept)
	again.RetryRejected(shop)
	expectNothing(t, again)
	again.Offer(operation("conf", "1"))
	take(t, again)
}

func TestOutbox_Cancel_LeavesNoDeadLetter(t *testing.T) {
	o := New(Config{}, records{})
	o.Offer(event("a", "1"))
	item := take(t, o)
	o.Cancel("event/a")
	o.Reject(item, errSend)
	expectRefused(t, o, 0)
	o.Offer(event("b", "1"))
	o.Reject(take(t, o), errSend)
	o.Cancel("event/b")
	expectRefused(t, o, 0)
}

// A rejected deletion must not be sent after the next object with the same name.
func TestOutbox_RetryRejected_SkipsOutdatedDeletions(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(operation("old", ""))
	o.Reject(take(t, o), errSend)
	o.Offer(operation("new", "1"))
	item := take(t, o)

	o.Reject(item, errSend)
	o.RetryRejected(shop)
	first := take(t, o)
	if !first.Report.(observe.Operation).Deleted {
		t.Errorf("first came %+v", first.Report)
	}
	o.Reject(first, errSend)
	o.Ack(take(t, o), Receipt{})

	o.RetryRejected(shop)
	expectNothing(t, o)
	expectRefused(t, o, 0)
}

func TestOutbox_RejectCancelThenOffer_SendsAgain(t *testing.T) {
	o := New(Config{}, records{})
	o.Offer(event("a", "1"))
	o.Reject(take(t, o), errSend)
	o.Cancel("event/a")
	if got := o.State(event("a", "1")).Phase; got != Unknown {
		t.Errorf("phase %d, want Unknown", got)
	}
	o.Offer(event("a", "1"))
	item := take(t, o)
	o.Cancel("event/a")
	o.Reject(item, errSend)
	o.Offer(event("a", "1"))
	take(t, o)
}

func TestOutbox_ForgetInstanceThenReject_LeavesNothing(t *testing.T) {
	o := New(Config{InitialSync: true}, nil)
	o.Offer(event("a", "1"))
	seed(t, o, nil, nil)
	o.Forget("event/a")
	o.ForgetInstance(shop)
	o.Reject(take(t, o), errSend)
	expectEmpty(t, o)
	if len(o.accounts) > 0 || o.DeadLetters() > 0 {
		t.Errorf("%d accounts and %d dead letters, want none", len(o.accounts), o.DeadLetters())
	}
}

func TestOutbox_RetryRejectedThenRestart_SendsAgain(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Declare(shop)
	o.Offer(operation("x", "1"))
	o.Reject(take(t, o), errSend)
	o.RetryRejected(shop)

	restarted := New(Config{}, kept)
	restarted.Declare(shop)
	restarted.Offer(operation("x", "1"))
	expectTake(t, restarted, operation("x", "1").String())
}

// A dead letter whose report is not kept, of an Event that was forgotten meanwhile, leaves nothing.
func TestOutbox_RetryRejected_OfAForgottenKey_LeavesNothing(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Declare(shop)
	o.Offer(operation("x", "1"))
	o.Reject(take(t, o), errSend)

	restarted := New(Config{}, kept)
	restarted.Declare(shop)
	restarted.Forget(operation("x", "").Key())
	restarted.RetryRejected(shop)
	expectEmpty(t, restarted)
	expectRecords(t, kept, 0, 0)
}

// A deletion is the last report of its key, also if the protocol has no place for it.
func TestOutbox_DeletionWithoutPlace_ForgetsItsKey(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(operation("x", "1"))
	o.Ack(take(t, o), Receipt{})
	o.SetProtocol(without(operation("x", "").Key()))
	o.Offer(operation("x", ""))
	expectNothing(t, o)
	expectEmpty(t, o)
	expectRecords(t, kept, 0, 0)
}

// Synthetic Events about one object do not wait for each other: one may fail, or belong to another instance.
func TestOutbox_SyntheticEvents_AreIndependent(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(synthetic("pod/app/1"))
	o.Offer(synthetic("pod/app/2"))
	o.Retry(take(t, o), time.Hour, errSend)
	if item := take(t, o); item.Report.Key() != synthetic("pod/app/2").Key() {
		t.Errorf("the outbox sent %s, want the second Event", item.Report)
	}
}

// Each deletion of two objects of one name was rejected. Both are sent again, the earlier one first.
func TestOutbox_RetryRejected_TwoDeletionsOfAName(t *testing.T) {
	o := New(Config{}, nil)
	for _, uid := range []types.UID{"a", "b"} {
		o.Offer(operation(uid, "1"))
		o.Ack(take(t, o), Receipt{})
		o.Offer(operation(uid, ""))
		o.Reject(take(t, o), errSend)
	}
	o.RetryRejected(shop)
	for _, uid := range []types.UID{"a", "b"} {
		item := take(t, o)
		if item.Report.Key() != operation(uid, "").Key() {
			t.Errorf("the outbox sent %s, want the deletion of %s", item.Report.Key(), uid)
		}
		o.Ack(item, Receipt{})
	}
	expectEmpty(t, o)
}

// Somebody corrects the ID of a resource. The reports that named the row of another workload are no longer rejected.
func TestOutbox_ForgetExcept_DropsDeadLettersOfTheOtherRow(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	wrong, deleted := operation("new", "10"), operation("old", "")
	for _, r := range []observe.Report{deleted, wrong} {
		o.Offer(r)
		o.Reject(take(t, o), errSend)
	}
	right := wrong
	right.Attribution.Resource.ID++
	for _, box := range []*Outbox{New(Config{}, kept), o} { // also after a restart
		box.Offer(right)
		box.ForgetExcept(observe.SubjectOf(wrong), right.Key())
		if p := box.Progress(shop); p.Rejected != 0 || p.Pending != 1 {
			t.Errorf("%d reports are rejected and %d pending, want none and the one of the right row", p.Rejected, p.Pending)
		}
	}
}
