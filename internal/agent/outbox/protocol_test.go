package outbox

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

func healthy(cause string) observe.Status {
	return observe.Status{Workload: shop, Status: "Healthy", Cause: cause}
}

// expectReoffer checks whether reports were asked for again.
func expectReoffer(t *testing.T, o *Outbox, want bool) {
	t.Helper()
	select {
	case <-o.Reoffer():
		if !want {
			t.Error("reports are asked for again, want no request")
		}
	default:
		if want {
			t.Error("reports are not asked for again")
		}
	}
}

func TestOutbox_SetProtocol_DropsPendingWithoutPlace(t *testing.T) {
	o := New(Config{}, nil)
	expectReoffer(t, o, false)
	o.Offer(at("a", "1"))
	o.Offer(at("b", "1"))
	if !o.SetProtocol(without("a")) || o.SetProtocol(without("a")) {
		t.Error("SetProtocol: want true for the first call and false for the second")
	}
	expectReoffer(t, o, true)
	expectReoffer(t, o, false)
	o.Ack(expectTake(t, o, "b@1"), Receipt{})
	expectNothing(t, o)
	expectPending(t, o, 0, 0)
	o.Offer(at("a", "1"))
	expectNothing(t, o)
	o.SetProtocol(everything{})
	o.Offer(at("a", "1"))
	o.Offer(at("b", "1"))
	o.Ack(expectTake(t, o, "a@1"), Receipt{})
	expectNothing(t, o) // b was accepted, in whatever protocol
}

func TestOutbox_ProtocolVersion_DecidesWhatIsNews(t *testing.T) {
	o := New(Config{Protocol: without("")}, nil)
	o.Offer(healthy("one"))
	o.Ack(take(t, o), Receipt{})
	o.Offer(healthy("two")) // the protocol has no place for the cause
	expectNothing(t, o)
	if got := o.State(healthy("three")); !got.Current {
		t.Errorf("state of another healthy status: %+v, want it to be current", got)
	}
	if !o.Resend(healthy("two"), Receipt{Accepted: true}) {
		t.Error("Resend of the settled word: got false")
	}
	o.Ack(take(t, o), Receipt{})
}

func TestOutbox_SetProtocol_SendsSnapshotsAgainInFull(t *testing.T) {
	for _, status := range []observe.Status{healthy("a cause"), healthy("")} { // the latter has the same version in both
		o := New(Config{Protocol: without("")}, nil)
		o.Offer(status)
		o.Offer(at("b", "1"))
		o.Ack(take(t, o), Receipt{})
		o.Ack(take(t, o), Receipt{})
		for _, p := range []Protocol{everything{}, without(""), everything{}} {
			o.SetProtocol(p)
			o.Offer(status)
			o.Offer(at("b", "1")) // no snapshot: it was accepted
			item := take(t, o)
			if item.Report != status {
				t.Errorf("%T: sent %v, want the whole status", p, item.Report)
			}
			o.Ack(item, Receipt{})
			o.Offer(status)
			expectNothing(t, o)
		}
	}
}

func TestOutbox_SetProtocol_WhileAStatusWaits_SendsItOnce(t *testing.T) {
	o := New(Config{Protocol: without("")}, nil)
	o.Offer(healthy("a cause"))
	o.SetProtocol(everything{})
	o.Offer(healthy("a cause"))
	item := take(t, o)
	if item.Report != healthy("a cause") {
		t.Errorf("sent %+v, want the whole status", item.Report)
	}
	o.Ack(item, Receipt{})
	o.Offer(healthy("a cause"))
	expectNothing(t, o)
}

func TestOutbox_SetProtocol_WhileAStatusIsOut_SendsItAgain(t *testing.T) {
	for _, status := range []observe.Status{healthy("a cause"), healthy("")} {
		begin := time.Now()
		o := New(Config{Protocol: without("")}, nil)
		o.Offer(status)
		item := take(t, o)
		o.SetProtocol(everything{})
		o.Offer(status)
		o.Ack(item, Receipt{}) // the control plane has the word only
		expectPending(t, o, 1, 0)
		if since := o.Progress(shop).Since; since.Before(begin) {
			t.Errorf("pending since %s, want a time after the start", since)
		}
		o.Ack(take(t, o), Receipt{})
		expectNothing(t, o)
	}
}

func TestOutbox_SetProtocol_WhileAReportWithoutPlaceIsOut(t *testing.T) {
	for name, settle := range map[string]func(*Outbox, Item){
		"Ack":     func(o *Outbox, item Item) { o.Ack(item, Receipt{}) },
		"Nack":    func(o *Outbox, item Item) { o.Nack(item, Failure{Cause: errSend}) },
		"Requeue": func(o *Outbox, item Item) { o.Requeue(item) },
		"Reject":  func(o *Outbox, item Item) { o.Reject(item, errSend) },
	} {
		o := New(DefaultConfig(), nil)
		o.Offer(at("a", "1"))
		item := take(t, o)
		o.SetProtocol(without("a"))
		settle(o, item)
		if o.Pending() != 0 || o.DeadLetters() != 0 {
			t.Errorf("%s: %d pending, %d dead letters, want none", name, o.Pending(), o.DeadLetters())
		}
	}
}
