package notify

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// syncer is an InitialSyncer that returns some errors first.
type syncer struct {
	box    *outbox.Outbox
	errs   []error
	tries  []time.Duration // when it was called, from the first call on
	counts []int           // the attempts that were passed to it
	start  time.Time
}

func (a *syncer) InitialSync(_ context.Context, instance target.Instance, attempt int) error {
	if a.start.IsZero() {
		a.start = time.Now()
	}
	a.tries, a.counts = append(a.tries, time.Since(a.start)), append(a.counts, attempt)
	if len(a.errs) > 0 {
		err := a.errs[0]
		a.errs = a.errs[1:]
		return err
	}
	a.box.Seed(instance, nil, nil, nil)
	return nil
}

func TestNotifier_InitialSyncComesBeforeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender := fails()
		b := newBenchOf(DefaultConfig(), outbox.Config{InitialSync: true, Backoff: outbox.DefaultConfig().Backoff}, sender)
		busy := &threeport.Error{StatusCode: 429, RetryAfter: 7 * time.Second}
		a := &syncer{box: b.box, errs: []error{ErrIncomplete, ErrIncomplete, ErrNotReady, ErrNotReady, busy}}
		b.syncer = a
		b.settle(t, observe.Event{Workload: shop, UID: "a"})
		if want := []time.Duration{0, 0, 0, deferDelay, 3 * deferDelay, 3*deferDelay + 7*time.Second}; !slices.Equal(a.tries, want) {
			t.Errorf("it was tried at %v, want %v", a.tries, want)
		}
		if want := []int{1, 1, 1, 1, 1, 2}; !slices.Equal(a.counts, want) {
			t.Errorf("the tries were %v, want %v", a.counts, want)
		}
		if len(sender.sends) != 1 {
			t.Errorf("%d were sent", len(sender.sends))
		}
		if got := b.metric(t, "threeport_agent_reports_total", "adoption", "accepted"); got != 1 {
			t.Errorf("%v are counted", got)
		}
	})
}

// turnSyncer is an InitialSyncer that needs a number of turns for each instance.
type turnSyncer struct {
	box   *outbox.Outbox
	turns map[target.Instance]int
	order []target.Instance
	last  time.Time // of a turn
}

func (s *turnSyncer) InitialSync(_ context.Context, instance target.Instance, _ int) error {
	s.order, s.last = append(s.order, instance), time.Now()
	if s.turns[instance]--; s.turns[instance] > 0 {
		return ErrIncomplete
	}
	s.box.Seed(instance, nil, nil, nil)
	return nil
}

// An initial sync of many turns does not delay that of another instance.
func TestNotifier_InitialSyncs_TakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.Concurrency = 1
		b := newBenchOf(config, outbox.Config{InitialSync: true, Backoff: outbox.DefaultConfig().Backoff}, fails())
		large, small := target.Instance{Type: target.WorkloadInstance, ID: 1}, target.Instance{Type: target.WorkloadInstance, ID: 2}
		syncer := &turnSyncer{box: b.box, turns: map[target.Instance]int{large: 10, small: 1}}
		b.syncer = syncer
		begin := time.Now()
		b.settle(t, observe.Event{Workload: large, UID: "a"}, observe.Event{Workload: small, UID: "b"})
		if at := slices.Index(syncer.order, small); at > 1 || len(syncer.order) != 11 {
			t.Errorf("the turns are %v, want the small one first or second", syncer.order)
		}
		if took := syncer.last.Sub(begin); took > 0 {
			t.Errorf("the turns waited for %s", took)
		}
	})
}
