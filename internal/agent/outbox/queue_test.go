package outbox

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// laneWith returns a lane with one entry.
func laneWith(r observe.Report, retry retryState) *lane {
	x := newIndex()
	e := x.get(r.Key(), r.OrderingKey())
	e.report, e.retry = r, retry
	e.lane.queue = []*entry{e}
	return e.lane
}

func TestQueues_ClassesTakeTurns(t *testing.T) {
	now := time.Now()
	state, fresh := laneWith(at("state", "1"), retryState{}), laneWith(event("fresh", "1"), retryState{})
	quarantined := laneWith(at("bad", "1"), retryState{alone: quarantineAfter})
	var q queues
	for _, l := range []*lane{quarantined, state, fresh} {
		q.add(l, now)
	}
	if l, _ := q.next(now, false); l != fresh {
		t.Errorf("first is %v, want the fresh Event", l.name)
	}
	if l, _ := q.next(now, false); l != state {
		t.Errorf("second is %v, want the state, without the quarantine", l.name)
	}
	q.next(now, true)
	if l, _ := q.next(now, true); l != quarantined {
		t.Errorf("fourth is %v, want the quarantined report", l.name)
	}
}

func TestQueues_Next_ReturnsWhenTheFirstIsDue(t *testing.T) {
	now := time.Now()
	var q queues
	if l, due := q.next(now, true); l != nil || !due.IsZero() || !q.isEmpty() {
		t.Errorf("empty queues: got %v, due %s", l, due)
	}
	late, later := laneWith(at("a", "1"), retryState{retryAt: now.Add(2)}), laneWith(event("b", "1"), retryState{retryAt: now.Add(3)})
	q.add(later, now)
	q.add(late, now)
	if l, due := q.next(now, true); l != nil || !due.Equal(now.Add(2)) {
		t.Errorf("got %v, due %s; want none, due %s", l, due, now.Add(2))
	}
	late.dequeue()
	late.dequeue()
	if l, _ := q.next(now.Add(3), true); l != later {
		t.Errorf("got %v, want the lane that is left", l)
	}
}

func TestQueues_NextProbe_PrefersFewestAttempts(t *testing.T) {
	now := time.Now()
	var q queues
	tried, untried := laneWith(at("a", "1"), retryState{attempts: 2}), laneWith(at("b", "1"), retryState{attempts: 1})
	q.add(tried, now)
	q.add(untried, now.Add(-1))
	if l, _ := q.nextProbe(now); l != untried {
		t.Errorf("the probe is %v, want the one with fewer attempts", l.name)
	}
}

func TestQueues_EndOutage_MovesEventsToTheBacklog(t *testing.T) {
	now := time.Now()
	var q queues
	fresh, waiting := laneWith(event("a", "1"), retryState{waits: 3}), laneWith(at("b", "1"), retryState{retryAt: now.Add(time.Minute)})
	ready, quarantined := laneWith(at("c", "1"), retryState{}), laneWith(at("d", "1"), retryState{alone: quarantineAfter, waits: 3})
	for _, l := range []*lane{fresh, waiting, ready, quarantined} {
		q.add(l, now)
	}
	again := q.endOutage(now)
	if len(again) != 2 || fresh.isQueued() || waiting.isQueued() || !ready.isQueued() || !quarantined.isQueued() {
		t.Errorf("%d lanes are to be queued again, want the fresh Event and the waiting report", len(again))
	}
	if e := fresh.first(); !e.backlog || e.retry.waits != 0 || classOf(e) != classBacklog {
		t.Errorf("the Event is %+v, want it in the backlog", e.pending)
	}
	if got := quarantined.first().retry.waits; got != 3 {
		t.Errorf("the quarantined report has %d waits, want its 3", got)
	}
}
