package resync

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

var (
	shop    = instanceOf(1)
	errDown = &threeport.Error{Op: "list workload events", Err: errors.New("connection refused")}
)

func instanceOf(id int64) target.Instance {
	return target.Instance{Type: target.WorkloadInstance, ID: id}
}

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// bench is a resyncer with scripted neighbours, for use in a synctest bubble.
type bench struct {
	*Resyncer
	cluster  *cluster
	box      *held
	api      *script
	registry *prometheus.Registry
	logs     lines
}

func newBench(interval time.Duration, instances ...target.Instance) *bench {
	b := &bench{cluster: newCluster(), box: newHeld(), api: newScript(), registry: newRegistry()}
	for _, instance := range instances {
		b.cluster.edit(instance, func(*observe.DesiredState) {})
	}
	config := DefaultConfig()
	config.Interval = interval
	b.Resyncer = New(config, b.cluster, untracked, b.box, b.api, NewMetrics(b.registry), b.logs.logger())
	return b
}

// start runs the resyncer until the test ends.
func (b *bench) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// rows makes the list of Event rows return an error for some instances.
func (b *bench) rows(answer func(id int64) error) {
	b.api.events = func(f threeport.EventFilter, _, _ int) ([]threeport.WorkloadEvent, int64, error) {
		return nil, 0, answer(f.WorkloadInstanceID)
	}
}

func TestResyncer_InitialSync_WaitsUntilAllIsListed(t *testing.T) {
	b := newBench(0)
	if err := b.InitialSync(t.Context(), shop, 1); !errors.Is(err, notify.ErrNotObserved) {
		t.Errorf("got %v", err)
	}
	b.cluster.edit(shop, func(*observe.DesiredState) {})
	b.cluster.failing = errors.New("no answer")
	if err := b.InitialSync(t.Context(), shop, 1); !errors.Is(err, notify.ErrNotObserved) {
		t.Errorf("got %v", err)
	}
	b.cluster.failing = nil
	if err := b.InitialSync(t.Context(), shop, 1); err != nil || b.box.count() != 1 {
		t.Errorf("%d initial syncs are done: %v", b.box.count(), err)
	}
}

// When the agent stops after an outage, initial syncs are repeated with the last known state.
func TestResyncer_InitialSync_AfterTheInformersHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(0, shop)
		b.rows(func(int64) error { return errDown })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		if err := b.InitialSync(t.Context(), shop, 1); !errors.Is(err, errDown) {
			t.Errorf("got %v", err)
		}
		b.cluster.forget(shop)
		b.rows(func(int64) error { return nil })
		if err := b.InitialSync(t.Context(), shop, 2); !errors.Is(err, notify.ErrNotObserved) {
			t.Errorf("the initial sync uses an incomplete state: %v", err)
		}
		cancel()
		running.Wait()
		if err := b.InitialSync(t.Context(), shop, 2); err != nil || b.box.count() != 1 {
			t.Errorf("%d initial syncs are done: %v", b.box.count(), err)
		}
		if err := b.InitialSync(t.Context(), instanceOf(2), 1); !errors.Is(err, notify.ErrNotObserved) {
			t.Errorf("one that was never seen: %v", err)
		}
	})
}

func TestResyncer_Run_SpreadsDiffsOverTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		b := newBench(10 * time.Minute)
		for id := range int64(n) {
			b.cluster.edit(instanceOf(id+1), func(*observe.DesiredState) {})
		}
		start := time.Now()
		b.start(t)
		time.Sleep(24 * time.Hour)
		if b.cluster.ended() < 130 || b.cluster.ended() > 160 {
			t.Errorf("%d audits in a day", b.cluster.ended())
		}
		times := b.cluster.times()
		lengths := map[time.Duration]bool{}
		for i := n; i < len(times); i += n {
			round := times[i-1].Sub(start) // the last instance is audited at the end
			if round < 9*time.Minute || round > 11*time.Minute {
				t.Errorf("a round took %s", round)
			}
			lengths[round] = true
			for j := range n {
				if at, want := times[i-n+j].Sub(start), round*time.Duration(j+1)/n; at-want > time.Second || want-at > time.Second {
					t.Errorf("instance %d of a round is audited after %s, want %s", j, at, want)
				}
			}
			start = times[i-1]
		}
		if len(lengths) < 50 {
			t.Errorf("%d lengths of rounds", len(lengths))
		}
		if got := metric(t, b.registry, "threeport_agent_audits_total", "ok"); int(got) != b.cluster.ended() {
			t.Errorf("%v audits are counted", got)
		}
		if got := metric(t, b.registry, "threeport_agent_audit_last_success_timestamp_seconds"); time.Since(time.Unix(int64(got), 0)) > 12*time.Minute {
			t.Errorf("the last success was at %v", got)
		}
	})
}

func TestResyncer_Run_WithoutAnIntervalComparesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(0)
		b.cluster.edit(shop, func(*observe.DesiredState) {})
		b.start(t)
		time.Sleep(24 * time.Hour)
		if len(b.cluster.times()) > 0 || b.cluster.ended() > 0 {
			t.Errorf("asked %d times, %d audits", len(b.cluster.times()), b.cluster.ended())
		}
	})
}

func TestResyncer_Run_WithoutWorkloadsIsNotBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(time.Minute)
		b.start(t)
		time.Sleep(time.Hour)
		if b.cluster.ended() < 50 || b.cluster.ended() > 70 {
			t.Errorf("%d audits", b.cluster.ended())
		}
	})
}

func TestResyncer_Run_RepairsAfterTheRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(time.Minute)
		ev := event(shop, "a", "1", time.Now())
		b.cluster.edit(shop, func(i *observe.DesiredState) { i.Events = []observe.Event{ev} })
		b.box.states[ev.Key()] = outbox.KeyState{Phase: outbox.Settled, Version: ev.Version(), Receipt: outbox.Receipt{Accepted: true, RowID: 7}}
		b.cluster.stalled = 2
		b.start(t)
		time.Sleep(54*time.Second + recheckAfter - time.Second) // no round is shorter than that
		if len(b.box.sent()) > 0 {
			t.Error("no recheck")
		}
		time.Sleep(12*time.Second + 2*time.Second)
		if len(b.box.sent()) != 1 || metric(t, b.registry, "threeport_agent_audit_repairs_total", "event") != 1 {
			t.Errorf("resent %v", b.box.sent())
		}
		if got := metric(t, b.registry, "threeport_agent_audit_repairs_total", "watch"); got != 2 {
			t.Errorf("%v caches are counted", got)
		}
		b.box.refuse()
		time.Sleep(5 * time.Minute)
		if got := metric(t, b.registry, "threeport_agent_audit_repairs_total", "event"); got != 1 {
			t.Errorf("%v repairs are counted", got)
		}
	})
}

func TestResyncer_Run_SkipsTheRoundInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(10 * time.Minute)
		for id := range int64(100) {
			b.cluster.edit(instanceOf(id+1), func(*observe.DesiredState) {})
		}
		var tries atomic.Int64
		var down atomic.Bool
		down.Store(true)
		b.api.instance = func(id int64) (threeport.WorkloadInstance, error) {
			tries.Add(1)
			if down.Load() || id%20 == 7 {
				return threeport.WorkloadInstance{}, errDown
			}
			return threeport.WorkloadInstance{ID: &id}, nil
		}
		b.start(t)
		time.Sleep(12 * time.Minute)
		if n := tries.Load(); n > 2*maxFailures || n < maxFailures || b.cluster.ended() != 1 {
			t.Errorf("%d tries, %d audits of the watch", n, b.cluster.ended())
		}
		time.Sleep(time.Hour)
		if len(b.logs.lines()) > 0 || metric(t, b.registry, "threeport_agent_audits_total", "ok") > 0 {
			t.Errorf("logged %q", b.logs.lines())
		}
		down.Store(false)
		tries.Store(0)
		time.Sleep(66 * time.Minute)
		if n := tries.Load(); n < 450 {
			t.Errorf("single ones that fail end the audit: %d were read", n)
		}
	})
}

func TestResyncer_Run_EndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(time.Minute, shop)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		time.Sleep(10 * time.Minute)
		at := time.Now()
		cancel()
		running.Wait()
		if took := time.Since(at); took > 0 {
			t.Errorf("Run took %s", took)
		}
	})
}

func TestConfig_Validate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if (Config{Interval: -1}).Validate() == nil {
		t.Error("a negative interval passes")
	}
}
