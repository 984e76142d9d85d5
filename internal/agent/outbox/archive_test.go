package outbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// uuidOf returns the UID of an Event as the API server makes it.
func uuidOf(i int) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, i)).String())
}

// archiveConfig has a wait that is over at the next step.
var archiveConfig = Config{Backoff: Backoff{Base: time.Nanosecond, Max: time.Nanosecond}}

// withoutArchive returns an outbox that keeps all Events as entries.
func withoutArchive(store Store) *Outbox {
	o := New(archiveConfig, store)
	for _, id := range slices.Collect(maps.Keys(o.archive)) {
		key := observe.EventKey(types.UID(id.String()))
		o.getOrAdd(key, observe.OrderingKey(key))
	}
	o.archive = nil
	return o
}

// An outbox whose Events are archived does the same as one whose Events are all entries.
func TestArchive_RandomUse_ChangesNothing(t *testing.T) {
	seed := rand.Uint64()
	archived := 0
	for run := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { archived += compareArchive(t, seed+run) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed+run)
		}
	}
	if archived == 0 {
		t.Error("no Event was archived")
	}
}

// compareArchive does the same with both kinds of outboxes, and returns how often an Event was archived after a step.
func compareArchive(t *testing.T, seed uint64) (archived int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	stores := [2]records{{}, {}}
	start := func() [2]*Outbox { return [2]*Outbox{New(archiveConfig, stores[0]), withoutArchive(stores[1])} }
	outboxes := start()
	for range 200 {
		time.Sleep(time.Second)
		step, i, version := random.IntN(14), random.IntN(5), random.IntN(3)+1
		ev := event(uuidOf(i), fmt.Sprint(version))
		if random.IntN(4) == 0 {
			ev.Workload = other
		}
		if random.IntN(6) == 0 {
			ev = ev.WithOwnRow()
		}
		ev.Time = ev.Time.Add(time.Duration(random.IntN(1e9))) // a restart sends Events in the order of their times
		var results [2]any
		for n, o := range outboxes {
			results[n] = archiveStep(t, o, step, ev)
		}
		if step == 13 {
			outboxes = start()
		}
		if !reflect.DeepEqual(results[0], results[1]) {
			t.Fatalf("step %d: the result is %v, without an archive %v", step, results[0], results[1])
		}
		compareOutboxes(t, step, outboxes, stores)
		archived += len(outboxes[0].archive)
	}
	return archived
}

// archiveStep does one step with an Event.
func archiveStep(t *testing.T, o *Outbox, step int, ev observe.Event) any {
	t.Helper()
	switch step {
	case 0, 1, 2:
		o.Declare(ev.Workload)
		o.Offer(ev)
	case 3, 4, 5, 6:
		item, ok := tryTake(t, o)
		if !ok {
			return nil
		}
		switch sent := item.Report.(observe.Event); step {
		case 3:
			o.Reject(item, errSend)
		case 4:
			o.Nack(item, Failure{Cause: errSend})
		default:
			o.Ack(item, Receipt{RowID: int64(len(sent.UID)) + sent.Workload.ID, Instance: sent.Workload})
		}
		return item
	case 7:
		return o.State(ev)
	case 8:
		return o.Resend(ev, Receipt{Accepted: true, RowID: 77, Instance: ev.Workload})
	case 9:
		o.Cancel(ev.Key())
		o.DropRejected(observe.SubjectOf(ev), other)
	case 10:
		o.ForgetExcept(observe.SubjectOf(ev), ev.Key())
	case 11:
		if ev.ResourceVersion == "1" {
			o.ForgetExcept(observe.SubjectOf(ev))
		} else {
			o.RetryRejected(ev.Workload)
		}
	case 12:
		known := Known{Key: ev.Key(), Receipt: Receipt{Accepted: true, RowID: 9, Instance: ev.Workload}, Version: ev.Version()}
		o.Declare(ev.Workload)
		o.Seed(ev.Workload, []Known{known}, nil, nil)
	case 13:
		if ev.ResourceVersion == "1" {
			o.ForgetRestoredEvents()
		}
	}
	return nil
}

// compareOutboxes compares what can be seen of two outboxes.
func compareOutboxes(t *testing.T, step int, outboxes [2]*Outbox, stores [2]records) {
	t.Helper()
	var seen [2]map[string]any
	for n, o := range outboxes {
		events := slices.Sorted(o.Events())
		progress := map[target.Instance]target.DeliveryProgress{shop: o.Progress(shop), other: o.Progress(other)}
		tables := map[string]map[string]string{}
		for table, byKey := range stores[n] {
			tables[table] = map[string]string{}
			for key, value := range byKey {
				tables[table][key] = string(value)
			}
		}
		known := map[observe.Key]bool{}
		for i := range 5 {
			ev := event(uuidOf(i), "")
			known[ev.Key()] = o.Knows(ev.Key())
		}
		seen[n] = map[string]any{
			"Events": slices.Compact(events), "progress": progress, "records": tables, "known": known,
			"counts": [3]int{o.Pending(), o.Failing(), o.DeadLetters()},
		}
	}
	for what, got := range seen[0] {
		if want := seen[1][what]; !reflect.DeepEqual(got, want) {
			t.Fatalf("after step %d, the %s are\n%v\nwithout an archive\n%v", step, what, got, want)
		}
	}
}

// The Event that reports dropped Events is none of the cluster.
func TestArchive_DroppedEvents(t *testing.T) {
	store := records{}
	o := New(Config{MaxBytes: 1}, store)
	o.Declare(shop)
	o.Offer(event(uuidOf(1), "1"))
	item := take(t, o)
	if item.Report.(observe.Event).Dropped == nil {
		t.Fatalf("took %s, want the report of a dropped Event", item.Report)
	}
	o.Ack(item, Receipt{RowID: 1, Instance: shop})
	for _, o := range []*Outbox{o, New(Config{MaxBytes: 1}, store)} {
		if uid := item.Report.(observe.Event).UID; slices.Contains(slices.Collect(o.Events()), uid) {
			t.Errorf("%s is among the cluster's Events", uid)
		}
	}
}

// The outbox has no store here: the journal takes memory for each record as well.
func TestArchive_Memory(t *testing.T) {
	const events = 20_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, burst := range []int{1, events} {
		o := New(Config{}, nil)
		o.Declare(shop)
		before := heap()
		for i := range events {
			o.Offer(event(uuidOf(i), "12345678"))
			if (i+1)%burst != 0 {
				continue
			}
			for range burst {
				o.Ack(take(t, o), Receipt{RowID: int64(i), Instance: shop})
			}
		}
		perEvent := float64(heap()-before) / events
		runtime.KeepAlive(o)
		if len(o.entries) > 0 || perEvent > 150 {
			t.Errorf("bursts of %d: %d entries are left, and an Event takes %.0f bytes, want 0 and at most 150", burst, len(o.entries), perEvent)
		}
		t.Logf("bursts of %d: an Event takes %.0f bytes", burst, perEvent)
	}
}
