package outbox

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// groupWith returns a group with one entry.
func groupWith(r observe.Report, retry retryState) *group {
	x := newIndex()
	e := x.getOrAdd(r.Key(), r.OrderingKey())
	e.report, e.retry = r, retry
	e.group.queue = []*entry{e}
	return e.group
}

func TestQueues_ClassesTakeTurns(t *testing.T) {
	now := time.Now()
	state, fresh := groupWith(at("state", "1"), retryState{}), groupWith(event("fresh", "1"), retryState{})
	quarantined := groupWith(at("bad", "1"), retryState{alone: quarantineAfter})
	var q queues
	for _, g := range []*group{quarantined, state, fresh} {
		q.add(g, now)
	}
	if g, _ := q.next(now, [classes]bool{classQuarantined: true}); g != fresh {
		t.Errorf("first is %v, want the fresh Event", g.name)
	}
	if g, _ := q.next(now, [classes]bool{classQuarantined: true}); g != state {
		t.Errorf("second is %v, want the state, without the quarantine", g.name)
	}
	q.next(now, [classes]bool{})
	if g, _ := q.next(now, [classes]bool{}); g != quarantined {
		t.Errorf("fourth is %v, want the quarantined report", g.name)
	}
}

// Instances take turns: the many reports of one do not delay those of others, also if they were offered later.
func TestOutbox_Next_InstancesTakeTurns(t *testing.T) {
	o := New(Config{}, nil)
	third := target.Instance{Type: target.WorkloadInstance, ID: 3}
	for i := range 1000 {
		o.Offer(at(fmt.Sprint("a", i), "1"))
	}
	expectTake(t, o, "a0@1")
	o.Offer(report{"b0", "b0", "1", other})
	o.Offer(report{"b1", "b1", "1", other})
	for _, want := range []string{"a1@1", "b0@1"} {
		expectTake(t, o, want)
	}
	o.Offer(report{"c0", "c0", "1", third})
	for _, want := range []string{"a2@1", "b1@1", "c0@1", "a3@1", "a4@1"} {
		expectTake(t, o, want)
	}
}

// A report that waited for a retry takes its turn among the instances, and is served before those of its instance that became ready later.
func TestOutbox_Next_RetriesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(at("late", "1"))
		o.Retry(take(t, o), time.Second, errSend)
		for i := range 1000 {
			o.Offer(report{fmt.Sprint("b", i), fmt.Sprint("b", i), "1", other})
		}
		expectTake(t, o, "b0@1")
		time.Sleep(2 * time.Second)
		o.Offer(at("new", "1"))
		for _, want := range []string{"b1@1", "late@1", "b2@1", "new@1"} {
			expectTake(t, o, want)
		}
	})
}

// Initial syncs leave senders to the reports of other instances.
func TestOutbox_Next_SyncsAreLimited(t *testing.T) {
	o := New(Config{InitialSync: true, MaxSyncs: 2}, nil)
	var syncs []Item
	for id := range int64(5) {
		o.Declare(target.Instance{Type: target.WorkloadInstance, ID: 10 + id})
	}
	for range 2 {
		syncs = append(syncs, take(t, o))
	}
	expectNothing(t, o)
	o.Offer(observe.Status{Workload: other, Status: "Healthy"})
	if item := take(t, o); item.Report.Instance() != other {
		t.Errorf("took %s, want a report beside the initial syncs", item.Report)
	}
	o.Defer(syncs[0], 0, nil)
	if item := take(t, o); item.Report == syncs[1].Report {
		t.Errorf("took %s again", item.Report)
	}
	expectNothing(t, o)
}

// source is where a large object is read.
type source struct{}

func (source) Load(context.Context) (runtime.Object, error) { return nil, nil }

func TestOutbox_Next_LargeOperationsAreLimited(t *testing.T) {
	o := New(Config{MaxLarge: 2}, nil)
	for i := range 10 {
		op := operation(types.UID(fmt.Sprint("large-", i)), "1")
		op.Object.Name, op.Source = string(op.Object.UID), source{}
		o.Offer(op)
	}
	items, err := o.NextBatch(t.Context(), 10)
	if err != nil || len(items) != 2 {
		t.Fatalf("took %d reports, want 2 of the large ones: %v", len(items), err)
	}
	expectNothing(t, o)
	small := operation("small", "1")
	o.Offer(small)
	o.Ack(expectTake(t, o, small.String()), Receipt{})
	newer := items[0].Report.(observe.Operation)
	newer.ResourceVersion, newer.Source = "2", nil // no longer large
	o.Offer(newer)
	expectNothing(t, o)
	o.Ack(items[0], Receipt{})
	if item := take(t, o); isLarge(item.Report) == isLarge(take(t, o).Report) {
		t.Error("took two of a kind, want the newer version and one large operation")
	}
	expectNothing(t, o)
}

func TestQueues_Next_ReturnsWhenTheFirstIsDue(t *testing.T) {
	now := time.Now()
	var q queues
	if g, due := q.next(now, [classes]bool{}); g != nil || !due.IsZero() || !q.isEmpty() {
		t.Errorf("empty queues: got %v, due %s", g, due)
	}
	late, later := groupWith(at("a", "1"), retryState{retryAt: now.Add(2)}), groupWith(event("b", "1"), retryState{retryAt: now.Add(3)})
	q.add(later, now)
	q.add(late, now)
	if g, due := q.next(now, [classes]bool{}); g != nil || !due.Equal(now.Add(2)) {
		t.Errorf("got %v, due %s; want none, due %s", g, due, now.Add(2))
	}
	late.dequeue()
	late.dequeue()
	if g, _ := q.next(now.Add(3), [classes]bool{}); g != later {
		t.Errorf("got %v, want the remaining group", g)
	}
}

func TestQueues_NextProbe_PrefersFewestAttempts(t *testing.T) {
	now := time.Now()
	var q queues
	tried, untried := groupWith(at("a", "1"), retryState{attempts: 2}), groupWith(at("b", "1"), retryState{attempts: 1})
	q.add(tried, now)
	q.add(untried, now.Add(-1))
	if g, _ := q.nextProbe(now); g != untried {
		t.Errorf("the probe is %v, want the one with fewer attempts", g.name)
	}
}

func TestQueues_EndOutage_MovesEventsToTheBacklog(t *testing.T) {
	now := time.Now()
	var q queues
	fresh, waiting := groupWith(event("a", "1"), retryState{waits: 3}), groupWith(at("b", "1"), retryState{retryAt: now.Add(time.Minute)})
	ready, quarantined := groupWith(at("c", "1"), retryState{}), groupWith(at("d", "1"), retryState{alone: quarantineAfter, waits: 3})
	for _, g := range []*group{fresh, waiting, ready, quarantined} {
		q.add(g, now)
	}
	again := q.endOutage(now)
	if len(again) != 2 || fresh.isQueued() || waiting.isQueued() || !ready.isQueued() || !quarantined.isQueued() {
		t.Errorf("%d groups are to be queued again, want the fresh Event and the waiting report", len(again))
	}
	if e := fresh.first(); !e.backlog || e.retry.waits != 0 || classOf(e) != classBacklog {
		t.Errorf("the Event is %+v, want it in the backlog", e.pending)
	}
	if got := quarantined.first().retry.waits; got != 3 {
		t.Errorf("the quarantined report has %d waits, want its 3", got)
	}
}
