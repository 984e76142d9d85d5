package outbox

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// seed takes the initial sync of a workload, which is next, and ends it.
func seed(t *testing.T, o *Outbox, known []Known, missed []observe.Operation) {
	t.Helper()
	item := expectTake(t, o, InitialSync{shop}.String())
	o.Seed(shop, known, missed, nil)
	o.Ack(item, Receipt{})
}

func TestOutbox_InitialSync_HoldsReportsExceptStatuses(t *testing.T) {
	kept := records{}
	o := New(Config{InitialSync: true}, kept)
	o.Offer(event("a", "1"))
	o.Offer(operation("conf", "1"))
	item := expectTake(t, o, InitialSync{shop}.String())
	expectNothing(t, o)
	o.Offer(observe.Status{Workload: shop, Status: "Healthy"})
	o.Ack(expectTake(t, o, observe.Status{Workload: shop}.String()), Receipt{})
	o.Retry(item, 0, errSend)
	seed(t, o, nil, nil)
	o.Ack(take(t, o), Receipt{})
	o.Ack(take(t, o), Receipt{})
	o.Offer(event("b", "1"))
	o.Ack(take(t, o), Receipt{})
	if o.State(InitialSync{shop}).Phase != Unknown || len(kept[receiptTable]) != 4 {
		t.Errorf("the initial sync is stored: %v", kept[receiptTable])
	}
}

func TestOutbox_Close_DropsDeferredInitialSyncs(t *testing.T) {
	o := New(Config{InitialSync: true}, records{})
	o.Offer(event("a", "1"))
	o.Close()
	o.Defer(expectTake(t, o, InitialSync{shop}.String()), 0, nil)
	if _, err := o.Next(t.Context()); !errors.Is(err, ErrClosed) || o.Pending() != 1 {
		t.Errorf("%d reports are pending: %v", o.Pending(), err)
	}
}

// The informers may end while an initial sync is under way. The outbox closes afterwards, and the next attempt succeeds.
func TestOutbox_DeferAfterClose_TriesOnceMore(t *testing.T) {
	o := New(Config{InitialSync: true}, records{})
	o.Offer(event("a", "1"))
	item := expectTake(t, o, InitialSync{shop}.String())
	o.Close()
	o.Defer(item, 0, nil)
	item, err := o.Next(t.Context())
	if err != nil || item.Report != (InitialSync{shop}) {
		t.Fatalf("the outbox returned %v and %v, want the initial sync again", item.Report, err)
	}
	o.Seed(shop, nil, nil, nil)
	o.Ack(item, Receipt{})
	if item, err = o.Next(t.Context()); err != nil || item.Report.Key() != "event/a" {
		t.Errorf("the outbox returned %v and %v, want the Event", item.Report, err)
	}
}

// RetrySync ends the wait of a deferred initial sync, and no other wait.
func TestOutbox_RetrySync_EndsTheWaitOfADeferral(t *testing.T) {
	for reason, tt := range map[string]struct {
		settle func(*Outbox, Item)
		want   time.Duration
	}{
		"it was deferred": {func(o *Outbox, item Item) { o.Defer(item, time.Second, nil) }, 0},
		"it failed":       {func(o *Outbox, item Item) { o.Retry(item, time.Minute, errSend) }, time.Minute},
		"it is refused": {func(o *Outbox, item Item) {
			o.Refuse(item, target.QuotaExceeded, errSend)
		}, quotaWait},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := New(Config{InitialSync: true, Backoff: Backoff{Base: time.Second, Max: time.Second}}, nil)
				o.RetrySync(shop) // unknown
				o.Declare(shop)
				item, _ := next(t, o)
				o.RetrySync(shop) // under way
				tt.settle(o, item)
				if isDeferred := o.IsSyncDeferred(shop); isDeferred != (tt.want == 0) {
					t.Errorf("it is deferred: %t", isDeferred)
				}
				o.RetrySync(shop)
				item, waited := next(t, o)
				if waited != tt.want || item.Report.Key() != (InitialSync{shop}).Key() {
					t.Errorf("took %s after %s, want the initial sync after %s", item.Report, waited, tt.want)
				}
				o.Ack(item, Receipt{})
				o.RetrySync(shop) // done
				expectNothing(t, o)
			})
		})
	}
}

// Initial syncs that have had fewer turns come first, so that a short one does not wait for a turn of each long one.
func TestOutbox_InitialSync_FewerTurnsComeFirst(t *testing.T) {
	o := New(Config{InitialSync: true}, records{})
	instance := func(id int64) target.Instance { return target.Instance{Type: target.WorkloadInstance, ID: id} }
	offer := func(id int64) {
		o.Offer(observe.Event{Workload: instance(id), UID: types.UID(fmt.Sprint(id)), ResourceVersion: "1"})
	}
	turn := func(id int64) Item { return expectTake(t, o, InitialSync{instance(id)}.String()) }
	for id := range int64(3) {
		offer(id + 1)
	}
	for range 3 {
		for id := range int64(3) {
			o.Defer(turn(id+1), 0, nil)
		}
	}
	offer(4)
	o.Defer(turn(4), 0, nil)
	offer(5)
	for _, id := range []int64{5, 4, 1} {
		turn(id)
	}
}

func TestOutbox_InitialSync_OfAForgottenWorkload(t *testing.T) {
	kept := records{}
	New(Config{InitialSync: true}, kept).Offer(event("a", "1"))
	o := New(Config{InitialSync: true}, kept)
	seed(t, o, []Known{{Key: "event/a", Receipt: Receipt{RowID: 7}}}, nil)
	item := take(t, o)
	if item.Receipt.RowID != 7 {
		t.Errorf("sent is %+v", item)
	}
	o.Ack(item, item.Receipt)
	if len(o.accounts) > 0 {
		t.Error("its account is still there")
	}
}

func TestOutbox_Seed_SkipsReportsOfTheRemoteState(t *testing.T) {
	row := Receipt{Accepted: true, RowID: 7, Instance: shop}
	for name, offerFirst := range map[string]bool{"offered before": true, "offered after": false} {
		t.Run(name, func(t *testing.T) {
			kept := records{}
			o := New(Config{InitialSync: true}, kept)
			offer := func() {
				o.Offer(event("same", "1"))
				o.Offer(event("other", "2"))
				o.Offer(event("new", "3"))
			}
			if offerFirst {
				offer()
			} else {
				o.Offer(observe.Status{Workload: shop, Status: "Healthy"})
			}
			seed(t, o, []Known{
				{Key: "event/same", Receipt: row, Version: event("same", "1").Version()},
				{Key: "event/other", Receipt: row},
			}, nil)
			if !offerFirst {
				o.Ack(take(t, o), Receipt{})
			}
			if !offerFirst {
				offer()
			}
			rows := map[observe.Key]int64{}
			for range 2 {
				item := take(t, o)
				rows[item.Report.Key()] = item.Receipt.RowID
				o.Ack(item, item.Receipt)
			}
			expectNothing(t, o)
			if rows["event/other"] != 7 || rows["event/new"] != 0 || len(rows) != 2 {
				t.Errorf("sent are %v", rows)
			}
			if got := o.State(event("same", "1")); got != (KeyState{Settled, event("same", "1").Version(), row, true}) {
				t.Errorf("the one that is the same is %+v", got)
			}
			if len(kept[pendingTable]) > 0 {
				t.Errorf("still kept as pending are %v", kept[pendingTable])
			}
		})
	}
}

// A restored Event may be older than the remote state, so that of the cluster replaces it.
func TestOutbox_Seed_RefreshesRestoredEvents(t *testing.T) {
	kept := records{}
	New(Config{}, kept).Offer(event("a", "1"))
	o := New(Config{InitialSync: true}, kept)
	sync := take(t, o)
	row := Known{Key: "event/a", Receipt: Receipt{RowID: 7}, Version: event("a", "2").Version()}
	o.Seed(shop, []Known{row}, nil, []observe.Event{event("a", "2"), event("b", "1")})
	o.Ack(sync, Receipt{})
	expectNothing(t, o)

	o = New(Config{InitialSync: true}, kept)
	o.Offer(event("a", "3")) // since the restart
	sync = take(t, o)
	o.Seed(shop, nil, nil, []observe.Event{event("a", "2")})
	o.Ack(sync, Receipt{})
	if ev := take(t, o).Report.(observe.Event); ev.ResourceVersion != "3" {
		t.Errorf("sent is %+v", ev)
	}
}

func TestOutbox_Seed_SendsMissedDeletionsFirst(t *testing.T) {
	o := New(Config{InitialSync: true}, records{})
	o.Offer(operation("new", "1"))
	seed(t, o, nil, []observe.Operation{operation("old", "")})
	first := take(t, o)
	if op := first.Report.(observe.Operation); !op.Deleted || op.Object.UID != "old" {
		t.Fatalf("first came %+v", op)
	}
	expectNothing(t, o)
	o.Ack(first, Receipt{})
	if op := take(t, o).Report.(observe.Operation); op.Deleted || op.Object.UID != "new" {
		t.Errorf("then came %+v", op)
	}
	if got := o.State(operation("old", "")); got.Phase != Unknown {
		t.Errorf("the state of the deletion is %+v, want none", got)
	}
}

// A deletion that was delivered just before the process ended, or by another leader, must not undo a later report.
func TestOutbox_Seed_DropsOutdatedDeletions(t *testing.T) {
	for name, offered := range map[string]bool{"the next is offered": true, "the next is still to be seen": false} {
		t.Run(name, func(t *testing.T) {
			kept := records{}
			before := New(Config{InitialSync: true}, kept)
			before.Offer(operation("old", ""))
			before.Forget(operation("old", "").Key())
			o := New(Config{InitialSync: true}, kept)
			next := operation("new", "1")
			o.Offer(observe.Status{Workload: shop, Status: "Healthy"})
			if offered {
				o.Offer(next)
			}
			seed(t, o, []Known{{Key: next.Key(), OrderingKey: next.OrderingKey(), Receipt: Receipt{Accepted: true}, Version: "1"}}, nil)
			o.Ack(take(t, o), Receipt{})
			o.Offer(next)
			expectNothing(t, o)
			if len(kept[pendingTable]) > 0 {
				t.Errorf("kept are %v", kept[pendingTable])
			}
			o.Offer(operation("new", ""))
			take(t, o)
		})
	}
}

func TestOutbox_Seed_KnownDeletionIsNotSentAgain(t *testing.T) {
	o := New(Config{InitialSync: true}, nil)
	o.Offer(operation("old", ""))
	seed(t, o, nil, []observe.Operation{operation("old", "")})
	o.Ack(take(t, o), Receipt{})
	expectNothing(t, o)
}

func TestOutbox_Resend(t *testing.T) {
	o := New(Config{}, nil)
	if o.Resend(event("a", "1"), Receipt{}) {
		t.Error("a report that was never offered is sent again")
	}
	o.Offer(event("a", "1"))
	if o.Resend(event("a", "1"), Receipt{}) {
		t.Error("a report that is pending is sent again")
	}
	o.Ack(take(t, o), Receipt{RowID: 7})
	if o.Resend(event("a", "2"), Receipt{}) {
		t.Error("Resend of another version: got true")
	}
	if !o.Resend(event("a", "1"), Receipt{RowID: 8}) {
		t.Error("Resend: got false")
	}
	if item := take(t, o); item.Receipt.RowID != 8 {
		t.Errorf("sent is %+v", item)
	}
}

func TestOutbox_State_Phases(t *testing.T) {
	o := New(Config{}, nil)
	expect := func(want Phase) {
		t.Helper()
		if got := o.State(at("a", "")).Phase; got != want {
			t.Errorf("the phase is %d, want %d", got, want)
		}
	}
	expect(Unknown)
	o.Offer(at("a", "1"))
	expect(Pending)
	item := take(t, o)
	expect(Pending)
	o.Ack(item, Receipt{})
	expect(Settled)
	o.Offer(at("a", "2"))
	o.Reject(take(t, o), errSend)
	expect(Rejected)
}

func TestOutbox_InitialSync_EventOfAnotherWorkloadIsReleased(t *testing.T) {
	o := New(Config{InitialSync: true}, nil)
	toOther := event("a", "1")
	toOther.Workload = other
	o.Offer(observe.Status{Workload: other, Status: "Healthy"})
	o.Offer(event("a", "1"))
	sync := expectTake(t, o, InitialSync{other}.String())
	o.Seed(other, nil, nil, nil)
	o.Ack(sync, Receipt{})
	o.Ack(take(t, o), Receipt{}) // the status
	held := expectTake(t, o, InitialSync{shop}.String())
	expectNothing(t, o)
	o.Offer(toOther)
	item := take(t, o)
	if item.Report.Instance() != other {
		t.Errorf("took %+v", item)
	}
	o.Retry(item, 0, errSend)
	o.Offer(event("a", "2"))
	expectNothing(t, o)
	o.Ack(held, Receipt{})
}

func TestOutbox_Declare_BeginsTheInitialSync(t *testing.T) {
	kept := records{}
	before := New(Config{}, kept)
	before.Offer(operation("conf", "1"))
	before.Ack(take(t, before), Receipt{})
	o := New(Config{InitialSync: true}, kept)
	o.Declare(shop)
	o.Offer(operation("conf", "1"))
	if o.Progress(shop).Synced {
		t.Error("the initial sync is done before it was seeded, want it pending")
	}
	seed(t, o, nil, nil)
	if !o.Progress(shop).Synced {
		t.Error("the initial sync is pending after it was seeded, want it done")
	}
	expectNothing(t, o)
}

func TestOutbox_Declare_KeepsDeadLetters(t *testing.T) {
	kept := records{}
	before := New(Config{}, kept)
	before.Offer(event("a", "1"))
	before.Reject(take(t, before), errSend)
	o := New(Config{InitialSync: true}, kept)
	o.Declare(shop)
	seed(t, o, nil, nil)
	expectRefused(t, o, 1)
	o.Offer(event("b", "1"))
	o.ForgetInstance(shop) // and is declared again, before that is delivered
	o.Declare(shop)
	o.Ack(take(t, o), Receipt{})
	expectRefused(t, o, 1)
}

func TestInitialSync_HoldsReportsUntilFinished(t *testing.T) {
	var s initialSync
	for _, tt := range []struct {
		report observe.Report
		want   bool
	}{
		{event("a", "1"), true},
		{operation("a", "1"), true},
		{healthy(""), false},
		{observe.Tree{Workload: shop}, false},
		{InitialSync{shop}, false},
	} {
		if got := s.holds(tt.report); got != tt.want {
			t.Errorf("%s before the end: held %t, want %t", tt.report, got, tt.want)
		}
	}
	if _, ok := s.take("a"); ok {
		t.Error("remote state is known before the end")
	}
	s.finish()
	s.keep(Known{Key: "a", Version: "1"})
	if s.holds(event("a", "1")) {
		t.Error("an Event is held after the end")
	}
	if k, ok := s.take("a"); !ok || k.Version != "1" {
		t.Errorf("remote state %+v, %t", k, ok)
	}
	if _, ok := s.take("a"); ok {
		t.Error("remote state is returned twice")
	}
}

// When the agent stops, it does not wait for reports that the control plane refuses, and keeps them for the next process.
func TestOutbox_Close_DoesNotWaitForRefusedReports(t *testing.T) {
	for _, tt := range []struct {
		reason string
		settle func(*Outbox, Item)
	}{
		{"the instance is unknown", func(o *Outbox, item Item) { o.Refuse(item, target.UnknownInstance, errUnknown) }},
		{"it is not clear which row is missing", func(o *Outbox, item Item) { o.Defer(item, 0, nil) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			kept := records{}
			o := New(Config{Backoff: Backoff{Base: time.Hour, Max: time.Hour}}, kept)
			o.Offer(event("before", "1"))
			before := take(t, o)
			o.Offer(event("after", "1"))
			o.Close()
			after := take(t, o)
			tt.settle(o, before)
			tt.settle(o, after)
			begun := time.Now()
			item, err := o.Next(t.Context())
			if err == nil && item.Report == before.Report { // once more, because it was taken before Close
				tt.settle(o, item)
				item, err = o.Next(t.Context())
			}
			if waited := time.Since(begun); !errors.Is(err, ErrClosed) || waited > 0 {
				t.Errorf("%s: after %s the outbox returned %v and %v, want ErrClosed at once", tt.reason, waited, item.Report, err)
			}
			expectRecords(t, kept, 0, 2)
			expectPending(t, o, 2, 0)
		})
	}
}
