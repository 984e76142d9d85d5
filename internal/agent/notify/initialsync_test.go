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
		a := &syncer{box: b.box, errs: []error{ErrNotObserved, ErrNotObserved, busy}}
		b.syncer = a
		b.settle(t, observe.Event{Workload: shop, UID: "a"})
		if want := []time.Duration{0, notObservedDelay, 3 * notObservedDelay, 3*notObservedDelay + 7*time.Second}; !slices.Equal(a.tries, want) {
			t.Errorf("it was tried at %v, want %v", a.tries, want)
		}
		if want := []int{1, 1, 1, 2}; !slices.Equal(a.counts, want) {
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
