package outbox

import (
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

func expectRefused(t *testing.T, o *Outbox, n int) {
	t.Helper()
	p := o.Progress(shop)
	if o.DeadLetters() != n || p.Rejected != int64(n) || len(p.Rejections) != min(n, shownRejections) {
		t.Errorf("%d dead letters, shown is %+v; want %d", o.DeadLetters(), p, n)
	}
}

func TestADeadLetterIsTriedAgainWhenItChanges(t *testing.T) {
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

func TestADeadLetterIsTriedAgainOnDemand(t *testing.T) {
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

func TestDeadLettersOutliveARestart(t *testing.T) {
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

// An operation whose object was not seen since the restart is sent when it is.
func TestADeadLetterWithoutContentWaitsForTheNextOffer(t *testing.T) {
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

func TestWhatIsWithdrawnIsNoDeadLetter(t *testing.T) {
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

// A deletion that was refused must not be told after what bears the name now.
func TestARefusedDeletionIsNotToldOverTheNextObject(t *testing.T) {
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

func TestWhatWasRefusedAndWithdrawnIsNewsWhenItComesBack(t *testing.T) {
	o := New(Config{}, records{})
	o.Offer(event("a", "1"))
	o.Reject(take(t, o), errSend)
	o.Cancel("event/a")
	if got := o.State("event/a").Phase; got != Unknown {
		t.Errorf("it counts as phase %d", got)
	}
	o.Offer(event("a", "1"))
	item := take(t, o)
	o.Cancel("event/a")
	o.Reject(item, errSend)
	o.Offer(event("a", "1"))
	take(t, o)
}

func TestTheLastRefusalOfAForgottenWorkloadLeavesNothing(t *testing.T) {
	o := New(Config{InitialSync: true}, nil)
	o.Offer(event("a", "1"))
	adopt(t, o, nil, nil)
	o.Forget("event/a")
	o.ForgetInstance(shop)
	o.Reject(take(t, o), errSend)
	expectEmpty(t, o)
	if len(o.instances) > 0 || o.DeadLetters() > 0 {
		t.Errorf("left are %d accounts and %d dead letters", len(o.instances), o.DeadLetters())
	}
}
