package outbox

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

var (
	healthyShop = observe.Status{Workload: shop, Status: "Healthy"}
	endOfShop   = observe.NewWatchEnd(shop, "ThreeportWorkload shop was deleted", time.Unix(1, 0))
)

func never(target.Instance) bool  { return false }
func always(target.Instance) bool { return true }

// The last status is delivered although the account of the instance is dropped, and leaves nothing.
func TestOutbox_ForgetInstanceThenWatchEnd_IsSentAndForgotten(t *testing.T) {
	for _, tt := range []struct {
		reason string
		settle func(*Outbox, Item)
	}{
		{"it is accepted", func(o *Outbox, item Item) { o.Ack(item, Receipt{}) }},
		{"the row is removed", func(o *Outbox, item Item) { o.AckRemoved(item, MissingRow{Removed: true}) }},
		{"the instance is not assigned", func(o *Outbox, item Item) { o.Refuse(item, target.NotAssigned, errSend) }},
		{"it is rejected", func(o *Outbox, item Item) { o.Reject(item, errSend) }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			kept := records{}
			o := New(Config{InitialSync: true}, kept)
			o.Declare(shop)
			seed(t, o, nil, nil)
			o.Offer(healthyShop)
			o.Ack(take(t, o), Receipt{})
			o.ForgetInstance(shop)
			o.Offer(endOfShop)
			item := take(t, o)
			if item.Report != observe.Report(endOfShop) {
				t.Errorf("the agent sent %+v, want %+v", item.Report, endOfShop)
			}
			tt.settle(o, item)
			expectEmpty(t, o)
			expectRecords(t, kept, 0, 0)
			if len(o.accounts) > 0 || o.DeadLetters() > 0 {
				t.Errorf("%d accounts and %d dead letters are left, want none", len(o.accounts), o.DeadLetters())
			}
		})
	}
}

// A new ThreeportWorkload of the instance replaces the last status, also one that is being sent.
func TestOutbox_WatchEndThenDeclare_SendsTheNewStatus(t *testing.T) {
	o := New(Config{InitialSync: true}, nil)
	o.Offer(endOfShop)
	o.Declare(shop)
	o.Offer(healthyShop)
	for range 2 { // the other one is the initial sync
		switch item := take(t, o); item.Report {
		case observe.Report(healthyShop):
			o.Ack(item, Receipt{})
		case observe.Report(InitialSync{shop}):
		default:
			t.Errorf("the agent sent %+v, want the initial sync and %+v", item.Report, healthyShop)
		}
	}
	o.Offer(endOfShop)
	item := take(t, o)
	o.Offer(healthyShop)
	o.Ack(item, Receipt{})
	if item := take(t, o); item.Report != observe.Report(healthyShop) {
		t.Errorf("the agent sent %+v after the last status, want %+v", item.Report, healthyShop)
	}
}

// The agent restarts before a last status is delivered.
func TestOutbox_Restart_SendsPendingWatchEnd(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(healthyShop)
	o.Ack(take(t, o), Receipt{})
	o.Offer(endOfShop)

	again := New(Config{InitialSync: true}, kept)
	again.EndUndeclared(never, "another cause", time.Unix(2, 0))
	item := take(t, again)
	if item.Report != observe.Report(endOfShop) {
		t.Errorf("the agent sent %+v, want %+v", item.Report, endOfShop)
	}
	again.Ack(item, Receipt{})
	expectEmpty(t, again)
	expectRecords(t, kept, 0, 0)
}

// A ThreeportWorkload was deleted while no agent ran: its reports do not wait for an initial sync, and its status is replaced.
func TestOutbox_EndUndeclared(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(healthyShop)
	o.Ack(take(t, o), Receipt{})
	o.Offer(event("a", "1"))

	declared := New(Config{InitialSync: true}, kept)
	declared.EndUndeclared(always, "gone", time.Unix(2, 0))
	item := take(t, declared)
	if item.Report != observe.Report(InitialSync{shop}) {
		t.Errorf("the agent sent %s of a declared instance, want the initial sync", item.Report)
	}
	expectNothing(t, declared)

	gone := New(Config{InitialSync: true}, kept)
	gone.EndUndeclared(never, "gone", time.Unix(2, 0))
	sent := map[observe.Report]bool{}
	for range 2 {
		item := take(t, gone)
		sent[item.Report] = true
		gone.Ack(item, Receipt{})
	}
	if !sent[event("a", "1")] || !sent[observe.NewWatchEnd(shop, "gone", time.Unix(2, 0))] {
		t.Errorf("it sent %v, want the Event and the end of the watch", sent)
	}
	expectNothing(t, gone)
	if len(gone.accounts) > 0 {
		t.Errorf("%d accounts are left, want none", len(gone.accounts))
	}
}
