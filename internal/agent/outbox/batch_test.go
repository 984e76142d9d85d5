package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// batch takes a batch that is ready.
func batch(t *testing.T, o *Outbox, most int) []Item {
	t.Helper()
	items, _, err := o.takeBatch(most)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func expectBatch(t *testing.T, o *Outbox, most int, want ...string) []Item {
	t.Helper()
	items := batch(t, o, most)
	var got []string
	for _, item := range items {
		got = append(got, fmt.Sprint(item.Report))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("took %q, want %q", got, want)
	}
	return items
}

func TestOutbox_NextBatch_TakesOneOfEachGroup(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(in("group", "a", "1"))
	o.Offer(in("group", "b", "1"))
	o.Offer(at("c", "1"))
	o.Offer(at("d", "1"))
	first := expectBatch(t, o, 2, "a@1", "c@1")
	expectBatch(t, o, 2, "d@1")
	if got := batch(t, o, 2); len(got) > 0 {
		t.Errorf("took %v", got)
	}
	o.Ack(first[0], Receipt{})
	expectBatch(t, o, 2, "b@1")
}

func TestOutbox_NextBatch_WaitsForTheFirstOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		go func() {
			time.Sleep(time.Second)
			o.Offer(at("a", "1"))
		}()
		start := time.Now()
		items, err := o.NextBatch(t.Context(), 100)
		if err != nil || len(items) != 1 || time.Since(start) != time.Second {
			t.Errorf("took %d after %s: %v", len(items), time.Since(start), err)
		}
	})
}

func TestOutbox_NextBatch_SyncProbeAndQuarantineComeAlone(t *testing.T) {
	t.Run("an initial sync", func(t *testing.T) {
		o := New(Config{InitialSync: true}, nil)
		o.Offer(observe.Status{Workload: other, Status: "Healthy"})
		o.Offer(observe.Status{Workload: shop, Status: "Healthy"})
		// Within a class the order is first come, first served. An initial sync ends the batch before it, and is next.
		expectBatch(t, o, 9, InitialSync{other}.String())
		expectBatch(t, o, 9, "status of "+other.String())
		expectBatch(t, o, 9, InitialSync{shop}.String())
		expectBatch(t, o, 9, "status of "+shop.String())
	})
	t.Run("a report that alone keeps failing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := New(Config{Backoff: Backoff{Base: time.Second, Max: time.Second}}, nil)
			o.Offer(at("poison", "1"))
			for i := range quarantineAfter {
				time.Sleep(2 * time.Second)
				o.Offer(at("good", strconv.Itoa(i)))
				poison, good := take(t, o), take(t, o)
				if poison.Report.Key() != "poison" {
					poison, good = good, poison
				}
				o.Ack(good, Receipt{})
				o.Nack(poison, Failure{Cause: errSend})
			}
			time.Sleep(2 * time.Second)
			for _, key := range []string{"a", "b", "c", "d"} {
				o.Offer(at(key, "1"))
			}
			var sizes []int
			for items := batch(t, o, 9); len(items) > 0; items = batch(t, o, 9) {
				if items[0].Report.Key() == "poison" {
					sizes = append(sizes, len(items))
				} else if slices.ContainsFunc(items, func(i Item) bool { return i.Report.Key() == "poison" }) {
					t.Errorf("the batch has other items: %v", items)
				}
			}
			if !slices.Equal(sizes, []int{1}) {
				t.Errorf("batches of %d items", sizes)
			}
		})
	})
	t.Run("a probe", func(t *testing.T) {
		o := New(Config{Backoff: Backoff{Base: 1, Max: 1}}, nil)
		for _, key := range []string{"a", "b", "c"} {
			o.Offer(at(key, "1"))
		}
		for _, item := range expectBatch(t, o, 9, "a@1", "b@1", "c@1") {
			o.Nack(item, Failure{Cause: errSend, General: true})
		}
		if !o.Suspended() {
			t.Fatal("no outage")
		}
		probe := batch(t, o, 9)
		if len(probe) != 1 || !probe[0].Probe {
			t.Fatalf("took %v", probe)
		}
		o.Ack(probe[0], Receipt{})
		if rest := batch(t, o, 9); len(rest) != 2 {
			t.Errorf("then came %v", rest)
		}
	})
}

func TestOutbox_NextBatch_InitialSyncKeepsItsTurn(t *testing.T) {
	o := New(Config{InitialSync: true}, nil)
	seed(t, first(o), nil, nil)
	for i := range 100 {
		o.Offer(event("uid", strconv.Itoa(i)))
		if i == 10 {
			o.Declare(other)
		}
		for _, item := range batch(t, o, 9) {
			if _, ok := item.Report.(InitialSync); ok {
				if i > 12 {
					t.Errorf("the initial sync came after %d items", i)
				}
				return
			}
			o.Ack(item, Receipt{})
		}
	}
	t.Error("the initial sync did not come")
}

// first declares the workload shop.
func first(o *Outbox) *Outbox {
	o.Declare(shop)
	return o
}

func TestOutbox_Requeue_IsNextOrHasNoPlace(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(in("group", "a", "1"))
	o.Offer(in("group", "b", "1"))
	item := take(t, o)
	o.Requeue(item)
	item = expectTake(t, o, "a@1")
	if item.Attempt != 2 {
		t.Errorf("attempt %d, want 2: the outcome of the first is not known", item.Attempt)
	}
	expectPending(t, o, 2, 0)
	o.SetProtocol(without("a"))
	o.Requeue(item)
	expectPending(t, o, 1, 0)
	o.Ack(expectTake(t, o, "b@1"), Receipt{})
	o.SetProtocol(everything{})
	o.Offer(in("group", "a", "1")) // it was never accepted: it is news
	o.Ack(expectTake(t, o, "a@1"), Receipt{})
}

func TestOutbox_Requeue_AfterOfferOrCancel(t *testing.T) {
	o := New(Config{}, nil)
	o.Offer(at("a", "1"))
	o.Offer(at("b", "1"))
	a, b := expectTake(t, o, "a@1"), expectTake(t, o, "b@1")
	o.Offer(at("a", "2"))
	o.Cancel("b")
	o.Requeue(a)
	o.Requeue(b)
	o.Ack(expectTake(t, o, "a@2"), Receipt{})
	expectNothing(t, o)
	expectPending(t, o, 0, 0)
}

func TestOutbox_Resend_RepairEndsWithANewerReport(t *testing.T) {
	o := New(DefaultConfig(), nil)
	o.Offer(at("a", "1"))
	item := take(t, o)
	if item.Repair || item.Settled != "" {
		t.Errorf("took %+v", item)
	}
	o.Ack(item, Receipt{})
	o.Resend(at("a", "1"), Receipt{})
	if item = take(t, o); !item.Repair || item.Settled != "1" {
		t.Errorf("took %+v", item)
	}
	o.Nack(item, Failure{Cause: errSend, General: true})
	o.Offer(at("a", "2"))
	o.Close()
	if item = take(t, o); item.Repair || item.Settled != "1" {
		t.Errorf("took %+v", item)
	}
	o.Ack(item, Receipt{})
}

func TestOutbox_DeliveryCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(event("a", "1"))
		o.Offer(observe.Status{Workload: shop, Status: "Down"})
		o.Offer(observe.Tree{Workload: shop, Revision: 1})
		begin := time.Now()
		if got := o.DeliveryCounts(shop); got != (DeliveryCounts{}) {
			t.Errorf("owed is %+v at once", got)
		}
		time.Sleep(target.OverdueAfter + time.Second)
		o.Offer(event("b", "1"))
		if got := o.DeliveryCounts(shop); got != (DeliveryCounts{Pending: 1}) {
			t.Errorf("owed is %+v", got)
		}
		if got := o.DelayedSince(); !got.Equal(begin) {
			t.Errorf("the oldest is of %s, want %s", got, begin)
		}
		for _, item := range batch(t, o, 9) {
			if item.Report.Key() == "event/b" {
				o.Reject(item, errSend)
			} else {
				o.Ack(item, Receipt{})
			}
		}
		if got := o.DeliveryCounts(shop); got != (DeliveryCounts{Rejected: 1}) || !o.DelayedSince().IsZero() {
			t.Errorf("owed is %+v", got)
		}
		if got := o.DeliveryCounts(other); got != (DeliveryCounts{}) {
			t.Errorf("owed to another is %+v", got)
		}
	})
}

func TestDroppedRange_ReportHasTheCounts(t *testing.T) {
	o := New(Config{MaxBytes: 1}, nil)
	o.Offer(event("a", "1"))
	ev := take(t, o).Report.(observe.Event)
	if ev.Dropped == nil || ev.Dropped.Warning != 1 || !ev.Dropped.First.Equal(event("a", "1").Time) {
		t.Errorf("the report of the range is %+v", ev)
	}
}

func TestOutbox_RandomBatches_LoseNothingAndKeepTheOrder(t *testing.T) {
	seed := rand.Uint64()
	for run := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { randomBatches(t, seed+run) })
		if t.Failed() {
			t.Fatalf("seed %d", seed+run)
		}
	}
}

// randomBatches is randomUse with batches. Some items are requeued.
func randomBatches(t *testing.T, seed uint64) {
	t.Helper()
	largest := 0
	useAtRandom(t, seed, 3, func(ctx context.Context, o *Outbox, l *ledger, random *rand.Rand) error {
		items, err := o.NextBatch(ctx, 1+random.IntN(20))
		if err != nil {
			return err
		}
		for _, item := range items {
			l.begin(item)
		}
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		l.mu.Lock()
		largest = max(largest, len(items))
		l.mu.Unlock()
		for _, item := range items {
			if random.IntN(5) == 0 {
				l.comeBack(o, item)
			} else {
				l.end(o, item, random.IntN(8))
			}
		}
		return nil
	})
	if largest < 2 {
		t.Errorf("the largest batch had %d", largest)
	}
}

// comeBack requeues an item.
func (l *ledger) comeBack(o *Outbox, item Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.out, item.Report.OrderingKey())
	o.Requeue(item)
}
