package resync

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
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
	if err := b.InitialSync(t.Context(), shop, 1); !errors.Is(err, notify.ErrNotReady) {
		t.Errorf("got %v", err)
	}
	b.cluster.edit(shop, func(*observe.DesiredState) {})
	b.cluster.failing = errors.New("no answer")
	if err := b.InitialSync(t.Context(), shop, 1); !errors.Is(err, notify.ErrNotReady) || !errors.Is(err, b.cluster.failing) {
		t.Errorf("got %v, want %v with the cause %v", err, notify.ErrNotReady, b.cluster.failing)
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
		if err := b.InitialSync(t.Context(), shop, 2); !errors.Is(err, notify.ErrNotReady) {
			t.Errorf("the initial sync uses an incomplete state: %v", err)
		}
		cancel()
		running.Wait()
		if err := b.InitialSync(t.Context(), shop, 2); err != nil || b.box.count() != 1 {
			t.Errorf("%d initial syncs are done: %v", b.box.count(), err)
		}
		if err := b.InitialSync(t.Context(), instanceOf(2), 1); !errors.Is(err, notify.ErrNotReady) {
			t.Errorf("one that was never seen: %v", err)
		}
	})
}

// An instance with thousands of rows leaves the sender to others after each turn, reads each row once, and finishes in one turn when
// the agent stops.
func TestResyncer_InitialSync_ManyRows_TakesTurns(t *testing.T) {
	const rows, each = 300, 10 * time.Millisecond
	for reason, stopped := range map[string]bool{"running": false, "stopping": true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(0)
			b.ended = stopped
			b.cluster.edit(shop, func(state *observe.DesiredState) {
				for i := range rows {
					resource := target.Resource{Ref: target.Ref{Kind: "ConfigMap", Name: strconv.Itoa(i)}, ID: int64(i + 1)}
					state.Absent = append(state.Absent, target.Attribution{Instance: shop, Listed: true, Resource: resource})
				}
			})
			reads := map[int64]int{}
			b.api.resource = func(id int64) (threeport.WorkloadResourceInstance, error) {
				time.Sleep(each)
				reads[id]++
				return threeport.WorkloadResourceInstance{ID: &id, LastOperation: new(threeport.OperationDeleted)}, nil
			}
			turns, longest := 0, time.Duration(0)
			for err := notify.ErrIncomplete; errors.Is(err, notify.ErrIncomplete); turns++ {
				begin := time.Now()
				err = b.InitialSync(t.Context(), shop, 1)
				longest = max(longest, time.Since(begin))
			}
			want := int(rows*each/turnTime) + 1
			if stopped {
				want = 1
			}
			if turns > want || !stopped && (turns < want-1 || longest > turnTime+2*each) {
				t.Errorf("%s: %d turns, the longest takes %s; want %d of %s", reason, turns, longest, want, turnTime)
			}
			if once := slices.Max(slices.Collect(maps.Values(reads))); len(reads) != rows || once != 1 || len(b.box.known) != rows {
				t.Errorf("%s: %d rows are read, up to %d times, and %d are known; want %d, once", reason, len(reads), once, len(b.box.known), rows)
			}
			if len(b.incomplete)+len(b.lastState) > 0 {
				t.Errorf("%s: a state is kept after the end", reason)
			}
		})
	}
}

// An instance with objects that the agent reads from the API server leaves the sender to others after each turn. If the objects change as
// fast as they are read, the turns get longer until one of them reads all.
func TestResyncer_InitialSync_ManyObjects_TakesTurns(t *testing.T) {
	const objects = 300
	for reason, changing := range map[string]bool{"unchanged": false, "changing": true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(0, shop)
			b.cluster.unread = objects
			turns, longest := 0, time.Duration(0)
			for err := notify.ErrIncomplete; errors.Is(err, notify.ErrIncomplete); turns++ {
				begin := time.Now()
				if err = b.InitialSync(t.Context(), shop, 1); err != nil && !errors.Is(err, notify.ErrIncomplete) {
					t.Fatal(err)
				}
				longest = max(longest, time.Since(begin))
				if changing && err != nil {
					b.cluster.unread = objects
				}
			}
			atMost, longestTurn := int(objects*readTime/turnTime)+1, turnTime+2*readTime
			if changing {
				atMost, longestTurn = 10*longerAfter, stateTimeout
			}
			if turns < 2 || turns > atMost || longest > longestTurn {
				t.Errorf("%s: %d turns, the longest takes %s; want at most %d of %s", reason, turns, longest, atMost, longestTurn)
			}
			if b.box.count() != 1 || len(b.incomplete)+len(b.lastState) > 0 {
				t.Errorf("%s: %d initial syncs are done, %d states are kept", reason, b.box.count(), len(b.incomplete)+len(b.lastState))
			}
		})
	}
}

// A control plane that fails at 2 % of the reads delays a workload, and does not stop it: each attempt reads only the rest of the rows.
func TestResyncer_InitialSync_SomeReadsFail_KeepsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows, failing = 500, 50 // every 50th read
		b := newBench(0)
		b.cluster.edit(shop, func(state *observe.DesiredState) {
			for i := range rows {
				resource := target.Resource{Ref: target.Ref{Kind: "ConfigMap", Name: strconv.Itoa(i)}, ID: int64(i + 1)}
				state.Absent = append(state.Absent, target.Attribution{Instance: shop, Listed: true, Resource: resource})
			}
		})
		tries, reads := 0, map[int64]int{}
		b.api.resource = func(id int64) (threeport.WorkloadResourceInstance, error) {
			if tries++; tries%failing == 0 {
				return threeport.WorkloadResourceInstance{}, errDown
			}
			reads[id]++
			return threeport.WorkloadResourceInstance{ID: &id, LastOperation: new(threeport.OperationDeleted)}, nil
		}
		const most = rows/failing/maxUnreadable + 1
		attempts, err := 1, b.InitialSync(t.Context(), shop, 1)
		for ; err != nil && attempts < 2*most; attempts++ {
			if !errors.Is(err, errDown) {
				t.Fatalf("got %v", err)
			}
			err = b.InitialSync(t.Context(), shop, attempts+1)
		}
		if err != nil || attempts > most || len(b.box.known) < rows-maxUnreadable {
			t.Errorf("%d attempts with %d rows, and the error %v; want %d attempts and %d rows", attempts, len(b.box.known), err, most, rows)
		}
		if once := slices.Max(slices.Collect(maps.Values(reads))); once > 1 {
			t.Errorf("a row is read %d times, want once", once)
		}
	})
}

// Rows that were read before a long outage are read again.
func TestResyncer_InitialSync_OldProgress_IsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(0)
		b.cluster.edit(shop, func(state *observe.DesiredState) {
			for id := range int64(5) {
				resource := target.Resource{Ref: target.Ref{Kind: "ConfigMap", Name: strconv.FormatInt(id, 10)}, ID: id + 1}
				state.Absent = append(state.Absent, target.Attribution{Instance: shop, Listed: true, Resource: resource})
			}
		})
		down, reads := true, 0
		b.api.resource = func(id int64) (threeport.WorkloadResourceInstance, error) {
			if reads++; down && id > 1 {
				return threeport.WorkloadResourceInstance{}, errDown
			}
			return threeport.WorkloadResourceInstance{ID: &id, LastOperation: new(threeport.OperationDeleted)}, nil
		}
		for range 2 {
			if err := b.InitialSync(t.Context(), shop, 1); !errors.Is(err, errDown) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(maxKept)
		}
		down, reads = false, 0
		if err := b.InitialSync(t.Context(), shop, 3); err != nil || reads != 5 {
			t.Errorf("got %v and %d reads after the outage, want 5", err, reads)
		}
	})
}

// The states of initial syncs that failed, or are incomplete, do not stay after their instances are gone.
func TestResyncer_InitialSync_Undeclared_IsForgotten(t *testing.T) {
	b := newBench(0)
	b.api.instance = func(int64) (threeport.WorkloadInstance, error) { return threeport.WorkloadInstance{}, errDown }
	for id := range int64(1000) {
		instance := instanceOf(id + 1)
		b.cluster.edit(instance, func(*observe.DesiredState) {})
		if err := b.InitialSync(t.Context(), instance, 1); !errors.Is(err, errDown) {
			t.Fatalf("got %v", err)
		}
		b.incomplete[instance] = &remoteState{}
		if id >= 10 {
			b.cluster.forget(instance)
		}
	}
	if n := len(b.lastState) + len(b.incomplete); n > 4*minForgetAt {
		t.Errorf("%d states are kept for 10 instances", n)
	}
	for id := range int64(10) {
		if _, ok := b.lastState[instanceOf(id+1)]; !ok {
			t.Errorf("the state of the instance %d, which is declared, is forgotten", id+1)
		}
	}
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

func TestResyncer_SetInterval_TakesEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(0, shop)
		b.start(t)
		time.Sleep(time.Hour)
		for _, interval := range []time.Duration{24 * time.Hour, time.Minute, time.Minute, 0} {
			before := b.cluster.ended()
			b.SetInterval(interval)
			time.Sleep(time.Hour)
			rounds, want := b.cluster.ended()-before, 0
			if interval == time.Minute {
				want = 60
			}
			if rounds < want*9/10-1 || rounds > want*11/10+1 || want == 0 && rounds > 0 {
				t.Errorf("%d rounds in an hour at an interval of %s, want %d", rounds, interval, want)
			}
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
