package outbox

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutbox_Progress_CountsPerWorkload(t *testing.T) {
	o := New(Config{}, nil)
	for i := range 4 {
		o.Offer(at(fmt.Sprint(i), "1"))
	}
	o.Ack(take(t, o), Receipt{})
	o.Reject(take(t, o), errors.New("bad"))
	o.Retry(take(t, o), time.Hour, errSend)
	o.Offer(report{"x", "x", "1", other})
	got := o.Progress(shop)
	if got.Pending != 2 || got.Accepted != 1 || got.Rejected != 1 || got.LastError != errSend.Error() {
		t.Errorf("got %+v", got)
	}
	if got.Rejections[0].Report != "1@1" || got.Rejections[0].Reason != "bad" || got.Rejections[0].Time.IsZero() {
		t.Errorf("got %+v", got.Rejections)
	}
	if got := o.Progress(other); got.Pending != 1 || got.Accepted != 0 || got.LastError != "" {
		t.Errorf("of the other one: %+v", got)
	}
	expectPending(t, o, 3, 1)
	o.Ack(take(t, o), Receipt{})
	if got := o.Progress(shop); got.LastError != "" || got.Pending != 1 {
		t.Errorf("after a success: %+v", got)
	}
	if got := o.Progress(shop); got.Rejections[0].Reason != "bad" {
		t.Errorf("a rejection is forgotten: %+v", got)
	}
}

func TestOutbox_Progress_RejectionsAreBoundedAndNewestFirst(t *testing.T) {
	o := New(Config{}, nil)
	const n = maxRejections + 5
	for i := range n {
		o.Offer(at(fmt.Sprint(i), "1"))
		o.Reject(take(t, o), errSend)
	}
	got := o.Progress(shop)
	if got.Rejected != n || len(got.Rejections) != maxRejections {
		t.Fatalf("%d are counted and %d shown", got.Rejected, len(got.Rejections))
	}
	for i, r := range got.Rejections {
		if want := fmt.Sprintf("%d@1", n-1-i); r.Report != want {
			t.Errorf("rejection %d is of %s, want %s", i, r.Report, want)
		}
	}
	got.Rejections[0].Reason = "changed by the caller"
	if o.Progress(shop).Rejections[0].Reason != errSend.Error() {
		t.Error("the caller shares the account's slice")
	}
}

func TestOutbox_Progress_SinceIsThatOfTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		o := New(Config{}, nil)
		expect := func(want time.Duration) {
			t.Helper()
			if got := o.Progress(shop).Since.Sub(start); got != want {
				t.Errorf("after %s: pending since %s, want %s", time.Since(start), got, want)
			}
		}
		o.Offer(at("a", "1"))
		time.Sleep(time.Second)
		o.Offer(at("a", "2")) // still behind since the first
		o.Offer(at("b", "1"))
		expect(0)
		a := expectTake(t, o, "a@2")
		if a.Since != start {
			t.Errorf("the item is pending since %s", a.Since)
		}
		time.Sleep(time.Second)
		o.Offer(at("a", "3"))
		time.Sleep(time.Second)
		o.Offer(at("a", "4"))
		o.Ack(expectTake(t, o, "b@1"), Receipt{})
		expect(0)
		time.Sleep(time.Second)
		o.Ack(a, Receipt{})
		expect(2 * time.Second) // when what was in flight was replaced
		a = expectTake(t, o, "a@4")
		if a.Since != start.Add(2*time.Second) {
			t.Errorf("the item is pending since %s", a.Since)
		}
		o.Offer(at("a", "5"))
		o.Retry(a, time.Second, errSend)
		expect(2 * time.Second) // nothing was delivered
		time.Sleep(time.Second)
		a = expectTake(t, o, "a@5")
		o.Offer(at("a", "6"))
		o.Ack(a, Receipt{})
		expect(5 * time.Second)
		o.Ack(expectTake(t, o, "a@6"), Receipt{})
		if got := o.Progress(shop); !got.Since.IsZero() || got.Pending != 0 {
			t.Errorf("got %+v", got)
		}
		o.Offer(at("a", "7"))
		a = take(t, o)
		o.Cancel("a")
		time.Sleep(time.Second)
		o.Offer(at("a", "8"))
		expect(6 * time.Second)
	})
}

func TestOutbox_Offer_OfAnotherWorkload_MovesThePendingReport(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(report{"a", "a", "1", shop})
	item := take(t, o)
	o.Offer(report{"a", "a", "2", other})
	if a, b := o.Progress(shop).Pending, o.Progress(other).Pending; a != 0 || b != 1 {
		t.Errorf("pending are %d and %d", a, b)
	}
	o.Ack(item, Receipt{})
	o.Ack(take(t, o), Receipt{})
	if a, b := o.Progress(shop), o.Progress(other); a.Accepted != 1 || b.Accepted != 1 || a.Pending+b.Pending > 0 {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestOutbox_ForgetInstance_DropsTheAccount(t *testing.T) {
	tests := []struct {
		reason string
		do     func(t *testing.T, o *Outbox)
	}{
		{"it is unknown", func(_ *testing.T, o *Outbox) { o.ForgetInstance(shop) }},
		{"nothing is pending", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.Ack(take(t, o), Receipt{})
			o.ForgetInstance(shop)
		}},
		{"something is, until it is accepted", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.ForgetInstance(shop)
			o.Offer(at("a", "2"))
			if o.Progress(shop).Pending != 1 {
				t.Error("Progress has no pending reports")
			}
			o.Ack(take(t, o), Receipt{})
		}},
		{"something is, until it is cancelled", func(_ *testing.T, o *Outbox) {
			o.Offer(at("a", "1"))
			o.ForgetInstance(shop)
			o.Cancel("a")
		}},
		{"something is in flight that was cancelled", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			o.Cancel("a")
			o.ForgetInstance(shop)
			o.Retry(item, 0, errSend)
			o.Offer(report{"a", "a", "1", other})
			o.Ack(take(t, o), Receipt{})
			o.ForgetInstance(other)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			o := New(Config{}, nil)
			tt.do(t, o)
			if len(o.accounts) > 0 {
				t.Errorf("%d accounts, want none", len(o.accounts))
			}
		})
	}
}
