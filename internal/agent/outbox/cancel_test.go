package outbox

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestOutbox_Cancel_DropsThePendingReport(t *testing.T) {
	t.Run("an unknown key", func(t *testing.T) {
		o := New(Config{}, nil)
		o.Cancel("a")
		expectEmpty(t, o)
	})
	t.Run("queued", func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(at("a", "1"))
		o.Cancel("a")
		o.Cancel("a")
		expectNothing(t, o)
		expectPending(t, o, 0, 0)
		o.Offer(at("a", "1"))
		expectTake(t, o, "a@1")
	})
	t.Run("in its group behind others", func(t *testing.T) {
		o := New(Config{}, nil)
		for _, key := range []string{"a", "b", "c"} {
			o.Offer(in("group", key, "1"))
		}
		o.Cancel("b")
		o.Ack(expectTake(t, o, "a@1"), Receipt{})
		o.Ack(expectTake(t, o, "c@1"), Receipt{})
		expectPending(t, o, 0, 0)
	})
	t.Run("in its group before others", func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(in("group", "a", "1"))
		o.Offer(in("group", "b", "1"))
		o.Cancel("a")
		o.Ack(expectTake(t, o, "b@1"), Receipt{})
		expectNothing(t, o)
	})
	t.Run("while another one of the group is in flight", func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(in("group", "a", "1"))
		o.Offer(in("group", "b", "1"))
		a := expectTake(t, o, "a@1")
		o.Cancel("b")
		expectNothing(t, o)
		o.Ack(a, Receipt{})
		expectNothing(t, o)
	})
	t.Run("idle, and the receipt stays", func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(at("a", "1"))
		o.Ack(expectTake(t, o, "a@1"), Receipt{RowID: 7})
		o.Cancel("a")
		o.Offer(at("a", "1"))
		expectNothing(t, o)
		o.Offer(at("a", "2"))
		o.Cancel("a")
		o.Offer(at("a", "3"))
		if item := expectTake(t, o, "a@3"); item.Receipt.RowID != 7 {
			t.Errorf("got %+v", item)
		}
	})
}

func TestOutbox_Cancel_WhileOut(t *testing.T) {
	accept := func(o *Outbox, item Item) { o.Ack(item, Receipt{RowID: 7}) }
	fail := func(o *Outbox, item Item) { o.Retry(item, 0, errSend) }
	reject := func(o *Outbox, item Item) { o.Reject(item, errSend) }
	tests := []struct {
		reason    string
		meanwhile func(o *Outbox) // while it is in flight
		settle    func(*Outbox, Item)
		want      string // of the same group, next
		attempt   int
	}{
		{"it succeeds", nil, accept, "b@1", 1},
		{"it fails, and is not sent again", nil, fail, "b@1", 1},
		{"it is rejected", nil, reject, "b@1", 1},
		{"it was replaced before, and succeeds", func(o *Outbox) { o.Offer(in("group", "a", "2")); o.Cancel("a") }, accept, "b@1", 1},
		{"it was replaced before, and fails", func(o *Outbox) { o.Offer(in("group", "a", "2")); o.Cancel("a") }, fail, "b@1", 1},

		{"it comes back, and succeeds", func(o *Outbox) { o.Offer(in("group", "a", "1")) }, accept, "b@1", 1},
		{"it comes back, and fails", func(o *Outbox) { o.Offer(in("group", "a", "1")) }, fail, "a@1", 2},

		{"another version comes back, and it succeeds", func(o *Outbox) { o.Offer(in("group", "a", "2")) }, accept, "a@2", 1},
		{"another version comes back, and it fails", func(o *Outbox) { o.Offer(in("group", "a", "2")) }, fail, "a@2", 2},
		{"the version before comes back, and it succeeds", func(o *Outbox) { o.Offer(in("group", "a", "0")) }, accept, "a@0", 1},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			o := New(Config{}, nil)
			o.Offer(in("group", "a", "0"))
			o.Ack(expectTake(t, o, "a@0"), Receipt{})
			o.Offer(in("group", "a", "1"))
			o.Offer(in("group", "b", "1"))
			item := expectTake(t, o, "a@1")
			o.Cancel("a")
			expectPending(t, o, 1, 0)
			if tt.meanwhile != nil {
				tt.meanwhile(o)
			}
			tt.settle(o, item)
			item = expectTake(t, o, tt.want)
			if item.Attempt != tt.attempt {
				t.Errorf("attempt %d, want %d", item.Attempt, tt.attempt)
			}
			o.Ack(item, Receipt{})
			if tt.want != "b@1" {
				o.Ack(expectTake(t, o, "b@1"), Receipt{})
			}
			expectPending(t, o, 0, 0)
			o.Forget("a")
			o.Forget("b")
			expectEmpty(t, o)
		})
	}
}

// An ambiguous failure may have created a row, which the next attempt has to look for.
func TestOutbox_CancelThenOffer_KeepsTheAttempts(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	o.Retry(expectTake(t, o, "a@1"), 0, errSend)
	expectPending(t, o, 1, 1)
	o.Cancel("a")
	expectPending(t, o, 0, 0)
	o.Offer(at("a", "2"))
	expectPending(t, o, 1, 0)
	if item := expectTake(t, o, "a@2"); item.Attempt != 2 {
		t.Errorf("attempt %d, want 2", item.Attempt)
	}
}

func TestOutbox_Forget_LeavesNothing(t *testing.T) {
	tests := []struct {
		reason string
		do     func(t *testing.T, o *Outbox)
	}{
		{"an unknown key", func(_ *testing.T, o *Outbox) { o.Forget("a") }},
		{"idle", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.Ack(take(t, o), Receipt{})
			o.Forget("a")
		}},
		{"pending: it is delivered first", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.Forget("a")
			o.Ack(expectTake(t, o, "a@1"), Receipt{})
		}},
		{"pending, rejected: it is a dead letter until the workload is forgotten", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.Forget("a")
			o.Reject(expectTake(t, o, "a@1"), errSend)
			if o.DeadLetters() != 1 {
				t.Errorf("there are %d dead letters", o.DeadLetters())
			}
			o.ForgetInstance(shop)
		}},
		{"pending, failed at first", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.Forget("a")
			o.Retry(expectTake(t, o, "a@1"), 0, errSend)
			o.Ack(expectTake(t, o, "a@1"), Receipt{})
		}},
		{"pending, cancelled before", func(_ *testing.T, o *Outbox) {
			o.Offer(at("a", "1"))
			o.Cancel("a")
			o.Forget("a")
		}},
		{"pending, cancelled after", func(_ *testing.T, o *Outbox) {
			o.Offer(at("a", "1"))
			o.Forget("a")
			o.Cancel("a")
		}},
		{"in flight", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			o.Forget("a")
			o.Ack(item, Receipt{})
		}},
		{"in flight and cancelled, failed", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			o.Cancel("a")
			o.Forget("a")
			o.Retry(item, 0, errSend)
		}},
		{"in flight and cancelled, accepted", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			o.Forget("a")
			o.Cancel("a")
			o.Ack(item, Receipt{})
		}},
		{"in flight and replaced by the last report", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			o.Offer(at("a", "deleted"))
			o.Forget("a")
			o.Ack(item, Receipt{})
			o.Ack(expectTake(t, o, "a@deleted"), Receipt{})
		}},
		{"with others in the group", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(in("group", "a", "1"))
			o.Forget("a")
			o.Offer(in("group", "b", "1"))
			o.Forget("b")
			o.Ack(expectTake(t, o, "a@1"), Receipt{})
			o.Ack(expectTake(t, o, "b@1"), Receipt{})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			o := New(Config{}, nil)
			tt.do(t, o)
			expectNothing(t, o)
			expectEmpty(t, o)
		})
	}
}

func TestOutbox_ForgetThenOffer_KeepsTheReceipt(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	item := take(t, o)
	o.Forget("a")
	o.Offer(at("a", "2"))
	o.Ack(item, Receipt{RowID: 7})
	item = expectTake(t, o, "a@2")
	if item.Receipt.RowID != 7 {
		t.Errorf("got %+v", item)
	}
	o.Ack(item, Receipt{RowID: 7})
	o.Offer(at("a", "2"))
	expectNothing(t, o)
	o.Offer(at("a", "3"))
	if item := expectTake(t, o, "a@3"); item.Receipt.RowID != 7 {
		t.Errorf("got %+v", item)
	}
}

func TestOutbox_ForgetExcept(t *testing.T) {
	gone, stays := synthetic("gone"), synthetic("stays")
	for _, tt := range []struct {
		reason string
		offer  []observe.Report
		keep   []observe.Key
		want   []string // the reports that are sent
		left   int      // keys that are known in the end
	}{
		{reason: "an unknown subject"},
		{reason: "a kept report is sent and stays known", offer: []observe.Report{stays}, keep: []observe.Key{stays.Key()}, want: []string{"stays"}, left: 1},
		{reason: "an Event is sent first", offer: []observe.Report{gone, stays}, keep: []observe.Key{stays.Key()}, want: []string{"gone", "stays"}, left: 1},
		{reason: "state is dropped", offer: []observe.Report{operation("x", "1")}},
		{reason: "several are sent first", offer: []observe.Report{synthetic("a"), synthetic("b"), stays}, keep: []observe.Key{stays.Key()}, want: []string{"a", "b", "stays"}, left: 1},
		{reason: "a deletion is sent first", offer: []observe.Report{operation("x", "")}, want: []string{"deleted"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := New(Config{}, nil)
			subjects := map[observe.Subject]struct{}{observe.SubjectOf(synthetic("")): {}}
			for _, r := range tt.offer {
				o.Offer(r)
				subjects[observe.SubjectOf(r)] = struct{}{}
			}
			for subject := range subjects {
				o.ForgetExcept(subject, tt.keep...)
			}
			var sent []string
			for item, ok := tryTake(t, o); ok; item, ok = tryTake(t, o) {
				switch r := item.Report.(type) {
				case observe.Event:
					sent = append(sent, string(r.UID))
				default:
					sent = append(sent, r.Version())
				}
				o.Ack(item, Receipt{})
			}
			if !slices.Equal(sent, tt.want) || len(o.entries) != tt.left {
				t.Errorf("the outbox sent %q and knows %d keys, want %q and %d", sent, len(o.entries), tt.want, tt.left)
			}
		})
	}
}

// The dead letter of a state goes with it; that of an Event stays until its workload is forgotten.
func TestOutbox_ForgetExcept_DeadLetters(t *testing.T) {
	for _, tt := range []struct {
		report observe.Report
		left   int
	}{{operation("x", "1"), 0}, {event("a", "1"), 1}} {
		o := New(Config{}, nil)
		o.Offer(tt.report)
		o.Reject(take(t, o), errSend)
		o.ForgetExcept(observe.SubjectOf(tt.report))
		if got := o.DeadLetters(); got != tt.left {
			t.Errorf("%s: %d dead letters are left, want %d", tt.report, got, tt.left)
		}
		o.ForgetInstance(shop)
		expectEmpty(t, o)
	}
}

// An Event has a row for each instance that its object belongs to. The object no longer belongs to one of them: the rejected report
// to that one is dropped. Pending reports stay.
func TestOutbox_DropRejected(t *testing.T) {
	blog := target.Instance{Type: target.WorkloadInstance, ID: 2}
	first, second := event("a", "1"), event("a", "1")
	second.Workload = blog
	second = second.WithOwnRow()
	for _, tt := range []struct {
		reason string
		except []target.Instance
	}{
		{"both", []target.Instance{shop, blog}},
		{"the first instance", []target.Instance{shop}},
		{"the second instance", []target.Instance{blog}},
		{"none", nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			pending, rejected, unknown := New(Config{}, nil), New(Config{}, nil), New(archiveConfig, nil)
			for _, o := range []*Outbox{pending, rejected, unknown} {
				o.Offer(first)
				o.Offer(second)
			}
			for range 2 {
				rejected.Reject(take(t, rejected), errSend)
				unknown.Refuse(take(t, unknown), target.UnknownResource, errSend)
			}
			for _, o := range []*Outbox{pending, rejected, unknown} {
				o.DropRejected(observe.EventSubject("a"), tt.except...)
			}
			if left := unknown.Pending(); left != len(tt.except) {
				t.Errorf("%d reports for unknown rows are pending, want %d", left, len(tt.except))
			}
			if pending.Pending() != 2 {
				t.Errorf("%d reports are pending, want 2", pending.Pending())
			}
			for _, instance := range []target.Instance{shop, blog} {
				if left := rejected.Progress(instance).Rejected; (left == 1) != slices.Contains(tt.except, instance) {
					t.Errorf("%s has %d dead letters, except %v", instance, left, tt.except)
				}
			}
			rejected.Offer(first) // the object belongs to the first instance again
			if want := 1 - int(rejected.Progress(shop).Rejected); rejected.Pending() != want {
				t.Errorf("%d reports are pending after another Offer, want %d", rejected.Pending(), want)
			}
		})
	}
}

// synthetic returns an Event that the agent made about one object.
func synthetic(uid types.UID) observe.Event {
	ev := event(uid, "1")
	ev.Synthetic, ev.InvolvedUID = true, "pod"
	return ev
}
