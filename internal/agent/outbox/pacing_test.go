package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

var (
	paced   = Config{Backoff: Backoff{Base: time.Second, Max: time.Minute}}
	failure = Failure{Cause: errSend}
	refusal = Failure{Cause: errSend, General: true}
)

// takeAll offers reports in groups of their own, and takes them.
func takeAll(t *testing.T, o *Outbox, keys ...string) map[string]Item {
	t.Helper()
	out := map[string]Item{}
	for _, key := range keys {
		o.Offer(at(key, "1"))
	}
	for range keys {
		item := take(t, o)
		out[string(item.Report.Key())] = item
	}
	return out
}

func expectSuspended(t *testing.T, o *Outbox, want bool) {
	t.Helper()
	if o.Suspended() != want {
		t.Errorf("suspended: %t, want %t", o.Suspended(), want)
	}
}

func TestOutbox_Nack_OneKeyIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		o.Nack(takeAll(t, o, "a")["a"], failure)
		expectSuspended(t, o, false)
		o.Offer(at("b", "1"))
		expectTake(t, o, "b@1")
	})
}

// The control plane answers, so refused instances are no outage, however many there are, and end one.
func TestOutbox_Refuse_IsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		items := takeAll(t, o, "a", "b", "c")
		if first := o.Refuse(items["a"], target.NotAssigned, errSend); !first {
			t.Error("the first refusal is not reported as the first")
		}
		if first := o.Refuse(items["b"], target.NotAssigned, errSend); first {
			t.Error("the second refusal of an instance is reported as the first")
		}
		expectSuspended(t, o, false)
		expectPending(t, o, 3, 0)
		if p := o.Progress(shop); p.Refusal != target.NotAssigned || p.LastError != errSend.Error() {
			t.Errorf("the progress is %+v, want the refusal", p)
		}
		o.Nack(items["c"], refusal)
		expectSuspended(t, o, true)
		if p := o.Progress(shop); p.Refusal != "" || p.LastError != errSend.Error() {
			t.Errorf("the progress is %+v, want the outage", p)
		}
		probe, _ := next(t, o)
		o.Refuse(probe, target.NotAssigned, errSend)
		expectSuspended(t, o, false)
	})
}

func TestOutbox_Refuse_BacksOffAndIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		item := takeAll(t, o, "a")["a"]
		total := time.Duration(0)
		for range 100 {
			o.Refuse(item, target.NotAssigned, errSend)
			var waited time.Duration
			if item, waited = next(t, o); waited <= 0 || waited > time.Minute {
				t.Fatalf("sent again after %s, want at most a minute", waited)
			}
			total += waited
		}
		if total < 10*time.Minute {
			t.Errorf("100 tries took %s, want a growing wait", total)
		}
		o.Offer(at("a", "2")) // a newer version
		o.Refuse(item, target.NotAssigned, errSend)
		item, _ = next(t, o)
		if got := fmt.Sprint(item.Report); got != "a@2" {
			t.Errorf("sent %s, want the newer version", got)
		}
		o.Ack(item, Receipt{})
		if p := o.Progress(shop); p.Refusal != "" || p.LastError != "" || p.Pending != 0 {
			t.Errorf("the progress after the assignment is %+v, want no error", p)
		}
	})
}

func TestOutbox_ForgetInstanceThenRefuse_DropsTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		item := takeAll(t, o, "a")["a"]
		o.ForgetInstance(shop)
		o.Refuse(item, target.NotAssigned, errSend)
		expectPending(t, o, 0, 0)
		if len(o.accounts)+len(o.entries) > 0 {
			t.Errorf("the outbox has %d accounts and %d keys, want none", len(o.accounts), len(o.entries))
		}
	})
}

func TestOutbox_CancelThenRefuse_IsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		item := takeAll(t, o, "a")["a"]
		o.Cancel("a")
		o.Refuse(item, target.NotAssigned, errSend)
		expectPending(t, o, 0, 0)
		expectNothing(t, o)
	})
}

func TestOutbox_Nack_TwoKeysAreAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		items := takeAll(t, o, "a", "b", "c")
		o.Nack(items["a"], failure)
		expectSuspended(t, o, false)
		o.Nack(items["b"], failure)
		expectSuspended(t, o, true)
		o.Offer(at("d", "1"))
		o.Nack(items["c"], failure) // sent before the outage
		expectNothing(t, o)

		var probes []string
		for limit := time.Second; len(probes) < 8; limit = min(2*limit, time.Minute) {
			probe, waited := next(t, o)
			if waited <= 0 || waited > limit {
				t.Errorf("probe %d came after %s, want at most %s", len(probes)+1, waited, limit)
			}
			if !probe.Probe {
				t.Error("Probe is false in an outage")
			}
			expectNothing(t, o) // one at a time
			probes = append(probes, string(probe.Report.Key()))
			o.Nack(probe, failure)
		}
		for _, key := range []string{"a", "b", "c", "d"} {
			if !slices.Contains(probes, key) {
				t.Errorf("%s was never the probe: %s", key, probes)
			}
		}

		probe, _ := next(t, o)
		o.Ack(probe, Receipt{})
		expectSuspended(t, o, false)
		takeAll(t, o) // no report is delayed
		for range 3 {
			if take(t, o).Probe {
				t.Error("Probe is true after the outage")
			}
		}
	})
}

func TestOutbox_Nack_GeneralIsAnOutageAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		o.Nack(takeAll(t, o, "a")["a"], refusal)
		expectSuspended(t, o, true)
	})
}

func TestOutbox_Outage_EndsWithAnAnswer(t *testing.T) {
	for name, answer := range map[string]func(*Outbox, Item){
		"accepted": func(o *Outbox, item Item) { o.Ack(item, Receipt{}) },
		"rejected": func(o *Outbox, item Item) { o.Reject(item, errSend) },
		"gone":     func(o *Outbox, item Item) { o.AckRemoved(item, MissingRow{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := New(paced, nil)
				items := takeAll(t, o, "a", "b")
				o.Nack(items["a"], failure)
				o.Nack(items["b"], failure)
				probe, _ := next(t, o)
				answer(o, probe)
				expectSuspended(t, o, false)
			})
		})
	}
}

func TestOutbox_Nack_RetryAfterHoldsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		items := takeAll(t, o, "a", "b", "c")
		start := time.Now()
		o.Nack(items["a"], Failure{Cause: errSend, RetryAfter: 30 * time.Second})
		o.Nack(items["b"], Failure{Cause: errSend, RetryAfter: 90 * time.Second})
		o.Ack(items["c"], Receipt{}) // sent before the outage
		o.Offer(at("d", "1"))
		probe, _ := next(t, o)
		if waited := time.Since(start); waited != 90*time.Second {
			t.Errorf("waited %s, want 90 s", waited)
		}
		o.Ack(probe, Receipt{})
		expectSuspended(t, o, false)
	})
}

// succeed offers a report of a key and accepts it.
func succeed(t *testing.T, o *Outbox, key string) {
	t.Helper()
	o.Offer(at(key, "1"))
	item := take(t, o)
	if string(item.Report.Key()) != key {
		t.Fatalf("took %s, want %s", item.Report, key)
	}
	o.Ack(item, Receipt{})
}

func TestOutbox_Nack_WhileOthersSucceed_Quarantines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		o.Offer(at("p", "1"))
		o.Offer(at("q", "1"))
		for round := range quarantineAfter {
			var items []Item
			for range 2 { // p and q
				item, _ := next(t, o)
				items = append(items, item)
			}
			succeed(t, o, fmt.Sprint("good ", round))
			for _, item := range items {
				o.Nack(item, failure)
			}
			expectSuspended(t, o, false)
		}
		first, _ := next(t, o)
		time.Sleep(time.Hour)
		expectNothing(t, o) // the other is due, and waits until the first is settled
		succeed(t, o, "good")
		o.Nack(first, failure)
		if other, _ := next(t, o); other.Report.Key() == first.Report.Key() {
			t.Error("quarantined reports do not take turns")
		} else {
			o.Ack(other, Receipt{})
		}
		// Both fail, and no outage comes of it: they were at fault before.
		again, waited := next(t, o)
		if waited > time.Minute {
			t.Errorf("waited %s, want a minute at most", waited)
		}
		o.Nack(again, failure)
		expectSuspended(t, o, false)
	})
}

func TestOutbox_Next_ClassesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		for i := range 3 { // a backlog: two of these fail, which begins an outage
			o.Offer(event(types.UID(fmt.Sprint("old ", i)), "1"))
		}
		a, b := take(t, o), take(t, o)
		o.Nack(a, failure)
		o.Nack(b, failure)
		probe, _ := next(t, o)
		o.Ack(probe, Receipt{})
		for i := range 3 {
			o.Offer(event(types.UID(fmt.Sprint("new ", i)), "1"))
			o.Offer(at(fmt.Sprint("state ", i), "1"))
		}
		seen := map[string]int{}
		for range 6 { // the backlog has two, and comes every third time
			kind, _, _ := strings.Cut(string(take(t, o).Report.Key()), " ")
			seen[kind]++
		}
		if seen["event/old"] != 2 || seen["event/new"] != 2 || seen["state"] != 2 {
			t.Errorf("of six came %v, want two of each", seen)
		}
	})
}

func TestOutbox_Close_EndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		o.Nack(takeAll(t, o, "a")["a"], Failure{Cause: errSend, RetryAfter: time.Hour})
		o.Close()
		if _, waited := next(t, o); waited != 0 {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestOutbox_Defer_IsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		items := takeAll(t, o, "a", "b")
		o.Defer(items["a"], time.Minute, nil)
		o.Defer(items["b"], time.Minute, nil)
		expectSuspended(t, o, false)
		expectPending(t, o, 2, 0)
		for range 2 {
			if item, _ := next(t, o); item.Attempt != 1 {
				t.Errorf("attempt %d, want 1", item.Attempt)
			}
		}
	})
}

// Reports that are at fault look like an outage if no other report is pending.
func TestOutbox_Outage_ProbesWithUntriedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(paced, nil)
		for i := range 25 {
			o.Offer(event(types.UID(fmt.Sprint("poison ", i)), "1"))
		}
		for range 30 {
			item, _ := next(t, o)
			o.Nack(item, failure)
		}
		expectSuspended(t, o, true)
		o.Offer(event("fresh", "1"))
		probe, waited := next(t, o)
		if probe.Report.Key() != "event/fresh" || waited > time.Minute {
			t.Errorf("the next probe was %s, after %s", probe.Report.Key(), waited)
		}
		o.Ack(probe, Receipt{})
		expectSuspended(t, o, false)
	})
}
