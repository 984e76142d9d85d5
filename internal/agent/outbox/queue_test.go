package outbox

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// groupWith returns a group with one entry.
func groupWith(r observe.Report, retry retryState) *group {
	x := newIndex()
	e := x.get(r.Key(), r.OrderingKey())
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
	if g, _ := q.next(now, false); g != fresh {
		t.Errorf("first is %v, want the fresh Event", g.name)
	}
	if g, _ := q.next(now, false); g != state {
		t.Errorf("second is %v, want the state, without the quarantine", g.name)
	}
	q.next(now, true)
	if g, _ := q.next(now, true); g != quarantined {
		t.Errorf("fourth is %v, want the quarantined report", g.name)
	}
}

func TestQueues_Next_ReturnsWhenTheFirstIsDue(t *testing.T) {
	now := time.Now()
	var q queues
	if g, due := q.next(now, true); g != nil || !due.IsZero() || !q.isEmpty() {
		t.Errorf("empty queues: got %v, due %s", g, due)
	}
	late, later := groupWith(at("a", "1"), retryState{retryAt: now.Add(2)}), groupWith(event("b", "1"), retryState{retryAt: now.Add(3)})
	q.add(later, now)
	q.add(late, now)
	if g, due := q.next(now, true); g != nil || !due.Equal(now.Add(2)) {
		t.Errorf("got %v, due %s; want none, due %s", g, due, now.Add(2))
	}
	late.dequeue()
	late.dequeue()
	if g, _ := q.next(now.Add(3), true); g != later {
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
