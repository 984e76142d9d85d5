package outbox

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestOutbox_Offer_ReplacesThePendingReport(t *testing.T) {
	o := New(Config{}, nil)
	for _, version := range []string{"1", "2", "3"} {
		o.Offer(at("a", version))
	}
	o.Ack(expectTake(t, o, "a@3"), Receipt{})
	expectNothing(t, o)
	o.Offer(at("a", "3"))
	expectNothing(t, o)
	o.Offer(at("a", "4"))
	expectTake(t, o, "a@4")
}

func TestOutbox_Next_KeepsTheOrderOfKeys(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	o.Offer(at("b", "1"))
	o.Offer(at("c", "1"))
	o.Offer(at("a", "2")) // does not lose its place
	for _, want := range []string{"a@2", "b@1", "c@1"} {
		expectTake(t, o, want)
	}
}

func TestOutbox_Next_OneItemOfAGroup(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(in("group", "a", "1"))
	o.Offer(in("group", "b", "1"))
	o.Offer(at("c", "1"))
	a := expectTake(t, o, "a@1")
	expectTake(t, o, "c@1")
	expectNothing(t, o)
	o.Ack(a, Receipt{})
	expectTake(t, o, "b@1")
}

func TestOutbox_Next_DeletionBeforeTheNextObject(t *testing.T) {
	op := func(uid types.UID, version string) observe.Operation {
		return observe.Operation{
			Attribution:     target.Attribution{Instance: shop, Listed: true},
			Object:          target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "app", Name: "web"}, UID: uid},
			ResourceVersion: version,
		}
	}
	added, deleted, again := op("uid-1", "1"), op("uid-1", ""), op("uid-2", "2")
	deleted.Deleted = true
	expect := func(t *testing.T, o *Outbox, want observe.Operation) Item {
		t.Helper()
		item := take(t, o)
		if got := item.Report.(observe.Operation); got.Object.UID != want.Object.UID || got.Deleted != want.Deleted {
			t.Fatalf("took %s deleted=%v, want %s deleted=%v", got.Object.UID, got.Deleted, want.Object.UID, want.Deleted)
		}
		expectNothing(t, o)
		return item
	}
	tests := []struct {
		reason string
		before func(t *testing.T, o *Outbox)
		settle func(o *Outbox, item Item)
	}{
		{"nothing was sent yet", func(*testing.T, *Outbox) {}, nil},
		{
			"the old one waits",
			func(_ *testing.T, o *Outbox) { o.Offer(added) }, nil,
		},
		{
			"the old one was accepted",
			func(t *testing.T, o *Outbox) { t.Helper(); o.Offer(added); o.Ack(expect(t, o, added), Receipt{}) }, nil,
		},
		{
			"the old one is in flight, and is accepted",
			func(_ *testing.T, o *Outbox) { o.Offer(added) },
			func(o *Outbox, item Item) { o.Ack(item, Receipt{}) },
		},
		{
			"the old one is in flight, and fails",
			func(_ *testing.T, o *Outbox) { o.Offer(added) },
			func(o *Outbox, item Item) { o.Retry(item, 0, errSend) },
		},
		{
			"the old one is in flight, and is rejected",
			func(_ *testing.T, o *Outbox) { o.Offer(added) },
			func(o *Outbox, item Item) { o.Reject(item, errSend) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			o := New(Config{}, nil)
			tt.before(t, o)
			var out Item
			if tt.settle != nil {
				out = expect(t, o, added)
			}
			o.Offer(deleted)
			o.Forget(deleted.Key())
			o.Offer(again)
			if tt.settle != nil {
				tt.settle(o, out)
			}
			o.Ack(expect(t, o, deleted), Receipt{})
			o.Ack(expect(t, o, again), Receipt{})
			o.Forget(again.Key())
			expectEmpty(t, o)
		})
	}
}

func TestOutbox_OfferWhileOut_SendsTheNewestNext(t *testing.T) {
	tests := []struct {
		reason  string
		offered []string
		want    string // empty: nothing
		attempt int
		settle  func(o *Outbox, item Item)
	}{
		{"accepted", []string{"2", "3"}, "a@3", 1, func(o *Outbox, item Item) { o.Ack(item, Receipt{RowID: 7}) }},
		{"failed", []string{"2", "3"}, "a@3", 2, func(o *Outbox, item Item) { o.Retry(item, 0, errSend) }},
		{"rejected", []string{"2", "3"}, "a@3", 2, func(o *Outbox, item Item) { o.Reject(item, errSend) }},
		{"accepted, and the same again", []string{"1"}, "", 0, func(o *Outbox, item Item) { o.Ack(item, Receipt{}) }},
		{"accepted, and back to the same", []string{"2", "1"}, "", 0, func(o *Outbox, item Item) { o.Ack(item, Receipt{}) }},
		{"rejected, and the same again", []string{"1"}, "", 0, func(o *Outbox, item Item) { o.Reject(item, errSend) }},
		{"failed, and back to the same", []string{"2", "1"}, "a@1", 2, func(o *Outbox, item Item) { o.Retry(item, 0, errSend) }},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			o := New(Config{}, nil)
			o.Offer(in("group", "a", "1"))
			o.Offer(in("group", "b", "1"))
			item := expectTake(t, o, "a@1")
			for _, version := range tt.offered {
				o.Offer(in("group", "a", version))
				expectNothing(t, o)
			}
			tt.settle(o, item)
			if tt.want != "" {
				item = expectTake(t, o, tt.want)
				if item.Attempt != tt.attempt {
					t.Errorf("attempt %d, want %d", item.Attempt, tt.attempt)
				}
				expectNothing(t, o)
				o.Ack(item, Receipt{})
			}
			o.Ack(expectTake(t, o, "b@1"), Receipt{})
			expectPending(t, o, 0, 0)
		})
	}
}

func TestOutbox_Reject_SendsNewerVersionsOnly(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	o.Reject(expectTake(t, o, "a@1"), errSend)
	o.Offer(at("a", "1"))
	expectNothing(t, o)
	o.Offer(at("a", "2"))
	// The try before the rejected one may have made a row: the sender is to look.
	if item := expectTake(t, o, "a@2"); item.Attempt != 2 || item.Receipt.Accepted {
		t.Errorf("got %+v", item)
	}
}

func TestOutbox_Next_HasTheReceipt(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	item := expectTake(t, o, "a@1")
	if item.Receipt != (Receipt{}) || item.Attempt != 1 {
		t.Errorf("got %+v", item)
	}
	o.Ack(item, Receipt{RowID: 7})
	o.Offer(at("a", "2"))
	item = expectTake(t, o, "a@2")
	if want := (Receipt{Accepted: true, RowID: 7}); item.Receipt != want || item.Attempt != 1 {
		t.Errorf("got %+v", item)
	}
	o.Reject(item, errSend)
	o.Offer(at("a", "3"))
	if item = expectTake(t, o, "a@3"); item.Receipt.RowID != 7 {
		t.Errorf("a rejection lost the row: %+v", item)
	}
}

func TestOutbox_Offer_WithoutAVersion_IsSentOnce(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", ""))
	o.Ack(expectTake(t, o, "a@"), Receipt{})
	o.Offer(at("a", ""))
	expectNothing(t, o)
}

func TestOutbox_Offer_WithoutAPlace_DoesNothing(t *testing.T) {
	o := New(Config{Protocol: without("a")}, nil)
	o.Offer(at("a", "1"))
	o.Offer(at("b", "1"))
	expectTake(t, o, "b@1")
	expectNothing(t, o)
	expectPending(t, o, 1, 0)
}

func TestOutbox_SettleTwice_Panics(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	item := take(t, o)
	o.Ack(item, Receipt{})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	o.Ack(item, Receipt{})
}
