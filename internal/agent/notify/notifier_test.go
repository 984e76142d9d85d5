package notify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestNotifier_SettlesByTheKindOfTheError(t *testing.T) {
	tests := []struct {
		reason             string
		err                error
		retried, rejected  float64
		lastError, refused int
	}{
		{"a network error passes", errNetwork, 1, 0, 1, 0},
		{"a 503 passes", errBusy, 1, 0, 1, 0},
		{"a 500 may pass", &threeport.Error{StatusCode: 500}, 1, 0, 1, 0},
		{"credentials are renewed", &threeport.Error{StatusCode: 401}, 1, 0, 1, 0},
		{"a proxy's 404 heals with the route", &threeport.Error{StatusCode: 404, Foreign: true}, 1, 0, 1, 0},
		{"a timeout passes", &threeport.Error{Err: context.DeadlineExceeded}, 1, 0, 1, 0},
		{"a cancelled context of the transport passes", &threeport.Error{Err: context.Canceled}, 1, 0, 1, 0},
		{"a 400 is permanent", errBad, 0, 1, 0, 1},
		{"an unsendable report is rejected", &threeport.Error{Unsendable: true}, 0, 1, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(DefaultConfig(), fails(tt.err))
				b.flush(t, status(1, "Healthy"))
				if got := b.metric(t, "threeport_agent_reports_total", "status", "retried"); got != tt.retried {
					t.Errorf("%v were retried", got)
				}
				if got := b.metric(t, "threeport_agent_reports_total", "status", "rejected"); got != tt.rejected {
					t.Errorf("%v were rejected", got)
				}
				if got := b.metric(t, "threeport_agent_reports_total", "status", "accepted"); got != 1-tt.rejected {
					t.Errorf("%v were accepted", got)
				}
				p := b.box.Progress(shop)
				if p.Rejected != int64(tt.rejected) || len(p.Rejections) != tt.refused || p.Pending > 0 {
					t.Errorf("shown is %+v", p)
				}
				if tt.refused > 0 && p.Rejections[0].Reason != tt.err.Error() {
					t.Errorf("shown is %+v", p.Rejections)
				}
				if got := b.logged("rejected a report"); got != tt.refused {
					t.Errorf("%d lines of a refusal", got)
				}
			})
		})
	}
}

// A workload that is not assigned to the cluster delays no other workload, and is delivered after its assignment.
func TestNotifier_InstanceNotAssigned_OthersAreDelivered(t *testing.T) {
	forbidden := &threeport.Error{StatusCode: 403, Problem: threeport.ProblemForbidden, Message: "assign it"}
	testRefused(t, forbidden, 2*time.Minute, "has not assigned a workload to this cluster")
}

// A cluster has used up its space. Nothing is lost, and all is delivered after there is space again.
func TestNotifier_QuotaExceeded_OthersAreDelivered(t *testing.T) {
	full := &threeport.Error{Problem: threeport.ProblemQuota, Message: "the cluster has no space left"}
	testRefused(t, full, 6*time.Minute, "has used up its space")
}

// testRefused has the control plane refuse the reports of three of four instances for an hour. They have to be delivered within a
// time after it.
func testRefused(t *testing.T, refusal error, within time.Duration, logged string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		assignedAt := time.Now().Add(time.Hour)
		sender := fails()
		start := time.Now()
		sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			assigned := item.Report.Instance().ID == 4
			if !assigned && time.Now().Before(assignedAt) {
				return outbox.Receipt{}, refusal
			}
			if waited := time.Since(start); assigned && waited > time.Second {
				t.Errorf("the assigned workload was sent after %s, want at once", waited)
			}
			return outbox.Receipt{}, nil
		}
		config := DefaultConfig()
		config.ShutdownTimeout = 24 * time.Hour
		b := newBench(config, sender)
		b.settle(t, status(1, "Healthy"), status(2, "Healthy"), status(3, "Healthy"), status(4, "Healthy"))
		if got := b.metric(t, "threeport_agent_reports_total", "status", "accepted"); got != 4 {
			t.Errorf("%v reports are accepted, want 4", got)
		}
		if wait := time.Since(assignedAt); wait > within {
			t.Errorf("the delivery ended %s after the end of the refusal, want at most %s", wait, within)
		}
		if got := b.logged(logged); got != 3 {
			t.Errorf("%d lines of a refusal, want one for each workload", got)
		}
		if got := b.logged("Delivery fails"); got != 0 {
			t.Errorf("%d lines of a failed delivery, want none", got)
		}
	})
}

// Somebody declares a workload before its row exists, or with a wrong ID. The reports are kept, and delivered once the row exists.
func TestNotifier_UnknownRow_IsKeptUntilItExists(t *testing.T) {
	resource := operationAt(7, "uid", "1")
	for _, tt := range []struct {
		reason  string
		unknown observe.Report
		refusal target.Refusal
		row     string
	}{
		{"an instance", status(1, "Healthy"), target.UnknownInstance, "WorkloadInstance 1"},
		{"an Event of an unknown instance", eventAt("a", "1"), target.UnknownInstance, "WorkloadInstance 1"},
		{"a resource", resource, target.UnknownResource, "WorkloadResourceInstance 7"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exists := time.Now().Add(time.Hour)
				sender := fails()
				sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
					if item.Report.Key() == tt.unknown.Key() && time.Now().Before(exists) {
						return outbox.Receipt{}, &threeport.Error{StatusCode: 404, Message: "record not found"}
					}
					return outbox.Receipt{}, nil
				}
				config := DefaultConfig()
				config.ShutdownTimeout = 24 * time.Hour
				b := newBench(config, sender)
				time.AfterFunc(30*time.Minute, func() {
					if p := b.box.Progress(shop); p.Refusal != tt.refusal || !strings.Contains(p.LastError, tt.row) || p.Pending != 1 {
						t.Errorf("the progress is %+v, want the refusal %s of %s", p, tt.refusal, tt.row)
					}
					agent := &agentState{box: b.box}
					if d := agent.describe(); d.DelaySeconds != 0 || d.Pending != 1 {
						t.Errorf("the agent has %d pending reports and a delay of %v s, want 1 and none", d.Pending, d.DelaySeconds)
					}
				})
				b.settle(t, tt.unknown, status(2, "Healthy"))
				if p := b.box.Progress(shop); p.Refusal != "" || p.Accepted != 1 {
					t.Errorf("the progress is %+v, want an accepted report", p)
				}
				if wait := time.Since(exists); wait > 2*time.Minute {
					t.Errorf("delivered %s after the row existed, want at most two minutes", wait)
				}
				kind := strings.TrimPrefix(strings.ToLower(fmt.Sprintf("%T", tt.unknown)), "observe.")
				if unknown, gone := b.metric(t, "threeport_agent_reports_total", kind, "unknown"), b.metric(t, "threeport_agent_reports_total", kind, "gone"); unknown < 10 || gone != 0 {
					t.Errorf("%v are counted as unknown and %v as gone, want one for each try, and none", unknown, gone)
				}
				if got := b.logged(`"level"=-1 "msg"="The control plane does not know ` + tt.row); got != 1 {
					t.Errorf("%d warnings name the row, want 1", got)
				}
			})
		})
	}
}

// The agent stops at once if nothing can be sent now: the row of the instance does not exist, or it is not assigned.
func TestNotifier_Stop_DoesNotWaitForRefusedReports(t *testing.T) {
	for reason, refused := range map[string]error{
		"the instance is unknown":      &threeport.Error{StatusCode: 404, Message: "record not found"},
		"the instance is not assigned": &threeport.Error{StatusCode: 403, Problem: threeport.ProblemForbidden},
	} {
		synctest.Test(t, func(t *testing.T) {
			sender := fails()
			sender.answer = func(context.Context, outbox.Item) (outbox.Receipt, error) { return outbox.Receipt{}, refused }
			config := DefaultConfig()
			config.Durable = true
			b := newBench(config, sender)
			stop := b.start(t)
			b.box.Offer(status(1, "Healthy"))
			b.box.Offer(eventAt("a", "1"))
			time.Sleep(time.Minute)
			begun := time.Now()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > time.Second || b.box.Pending() != 2 {
				t.Errorf("%s: stopping took %s, and %d reports are pending; want no wait, and 2", reason, took, b.box.Pending())
			}
		})
	}
}

// The row of a deleted workload is usually removed before the last status arrives. That is no error, and nothing waits for it.
func TestNotifier_WatchEndOfARemovedRow_IsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender := fails()
		sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			if observe.EndsWatch(item.Report) {
				return outbox.Receipt{}, &threeport.Error{StatusCode: 404, Message: "record not found"}
			}
			return outbox.Receipt{}, nil
		}
		b := newBench(DefaultConfig(), sender)
		begun := time.Now()
		end := observe.NewWatchEnd(shop, "ThreeportWorkload shop was deleted", time.Now())
		time.AfterFunc(30*time.Second, func() { b.box.Offer(end) })
		b.settle(t, status(1, "Healthy"))
		if took := time.Since(begun); took > time.Minute || b.box.Pending() > 0 || b.box.DeadLetters() > 0 {
			t.Errorf("after %s %d reports are pending and %d rejected, want none at once", took, b.box.Pending(), b.box.DeadLetters())
		}
		if logged := b.logged("WorkloadInstance"); logged > 0 {
			t.Errorf("%d log lines name the instance, want none", logged)
		}
	})
}

// An Event names a listed resource by an ID that the control plane does not know. Its 404 was taken for the removal of the instance,
// and all reports of the resource were discarded.
func TestNotifier_UnknownResource_EventsAndOperationsAreKept(t *testing.T) {
	event := eventAt("a", "1")
	event.ResourceID = 7
	for _, tt := range []struct {
		reason string
		offer  []observe.Report
	}{
		{"the Event is first", []observe.Report{event, status(1, "Healthy"), operationAt(7, "uid", "1")}},
		{"the status is first", []observe.Report{status(1, "Healthy"), event, operationAt(7, "uid", "1")}},
		{"the operation is first", []observe.Report{operationAt(7, "uid", "1"), event, status(1, "Healthy")}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exists := time.Now().Add(time.Hour)
				sender := fails()
				sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
					if _, isStatus := item.Report.(observe.Status); !isStatus && time.Now().Before(exists) {
						return outbox.Receipt{}, &threeport.Error{StatusCode: 404, Message: "record not found"}
					}
					return outbox.Receipt{}, nil
				}
				config := DefaultConfig()
				config.ShutdownTimeout = 24 * time.Hour
				b := newBench(config, sender)
				time.AfterFunc(30*time.Minute, func() {
					if p := b.box.Progress(shop); p.Refusal != target.UnknownResource || !strings.Contains(p.LastError, "WorkloadResourceInstance 7") || p.Pending != 2 {
						t.Errorf("the progress is %+v, want two reports that wait for WorkloadResourceInstance 7", p)
					}
				})
				b.settle(t, tt.offer...)
				if p := b.box.Progress(shop); p.Refusal != "" || p.Accepted != 3 {
					t.Errorf("the progress is %+v, want three accepted reports", p)
				}
				for _, kind := range []string{"event", "operation"} {
					if got := b.metric(t, "threeport_agent_reports_total", kind, "gone"); got != 0 {
						t.Errorf("%v reports of kind %s are gone, want none", got, kind)
					}
				}
				for _, refusal := range []string{"removed", "does not know WorkloadInstance"} {
					if got := b.logged(refusal); got != 0 {
						t.Errorf("%d lines have %q, want none", got, refusal)
					}
				}
			})
		})
	}
}

// Somebody changes an ID in the ThreeportWorkload to one that does not exist. The Events were delivered with the ID from before.
func TestNotifier_IDBecomesUnknown_ReportsAreKept(t *testing.T) {
	const other = 99
	event := eventAt("a", "1")
	event.ResourceID = 7
	for _, tt := range []struct {
		reason  string
		change  func(*observe.Event)
		refusal target.Refusal
	}{
		{"of the resource", func(e *observe.Event) { e.ResourceID = other }, target.UnknownResource},
		{"of the instance", func(e *observe.Event) { e.Workload.ID, e.ResourceID = other, 0 }, target.UnknownInstance},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changed := event
				tt.change(&changed)
				exists := time.Now().Add(time.Hour)
				var b *bench
				sender := fails()
				sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
					ev, isEvent := item.Report.(observe.Event)
					switch {
					case isEvent && (ev.Workload.ID == other || ev.ResourceID == other):
						if time.Now().After(exists) {
							return outbox.Receipt{}, nil
						}
						return outbox.Receipt{}, &threeport.Error{StatusCode: 404, Message: "record not found"}
					case isEvent:
						b.box.Offer(changed)
					}
					return outbox.Receipt{}, nil
				}
				config := DefaultConfig()
				config.ShutdownTimeout = 24 * time.Hour
				b = newBench(config, sender)
				time.AfterFunc(30*time.Minute, func() {
					if p := b.box.Progress(changed.Workload); p.Refusal != tt.refusal || p.Pending != 1 {
						t.Errorf("the progress is %+v, want a report with the refusal %s", p, tt.refusal)
					}
				})
				b.settle(t, status(1, "Healthy"), operationAt(7, "uid", "1"), event)
				if got := b.metric(t, "threeport_agent_reports_total", "event", "gone"); got != 0 {
					t.Errorf("%v Events are gone, want none", got)
				}
			})
		})
	}
}

// The control plane had the resource, and somebody removed it there.
func TestNotifier_RemovedResource_DiscardsItsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := eventAt("a", "1")
		event.ResourceID = 7
		var removed atomic.Bool
		var b *bench
		sender := fails()
		sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			if op, isOperation := item.Report.(observe.Operation); isOperation && op.ResourceVersion == "1" {
				removed.Store(true)
				b.box.Offer(event)
				b.box.Offer(operationAt(7, "uid", "2"))
				return outbox.Receipt{}, nil
			}
			if _, isStatus := item.Report.(observe.Status); removed.Load() && !isStatus {
				return outbox.Receipt{}, &threeport.Error{StatusCode: 404, Message: "record not found"}
			}
			return outbox.Receipt{}, nil
		}
		b = newBench(DefaultConfig(), sender)
		b.settle(t, status(1, "Healthy"), operationAt(7, "uid", "1"))
		for _, kind := range []string{"event", "operation"} {
			if got := b.metric(t, "threeport_agent_reports_total", kind, "gone"); got != 1 {
				t.Errorf("%v reports of kind %s are gone, want 1", got, kind)
			}
		}
		if p := b.box.Progress(shop); p.Refusal != "" || p.Pending != 0 {
			t.Errorf("the progress is %+v, want nothing undelivered", p)
		}
	})
}

// The control plane had the row, and somebody removed it there: it does not come back.
func TestNotifier_RemovedRow_DiscardsItsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		sender := fails()
		sender.answer = func(_ context.Context, item outbox.Item) (outbox.Receipt, error) {
			switch fmt.Sprint(item.Report.Version()) {
			case status(1, "Healthy").Version():
				b.box.Offer(status(1, "Down"))
				return outbox.Receipt{}, nil
			case status(1, "Down").Version():
				b.box.Offer(eventAt("a", "1"))
				b.box.Offer(operationAt(7, "uid", "1"))
			}
			return outbox.Receipt{}, &threeport.Error{StatusCode: 404, Message: "record not found"}
		}
		b = newBench(DefaultConfig(), sender)
		b.settle(t, status(1, "Healthy"))
		for _, kind := range []string{"status", "event", "operation"} {
			if got := b.metric(t, "threeport_agent_reports_total", kind, "gone"); got != 1 {
				t.Errorf("%v reports of kind %s are gone, want 1", got, kind)
			}
		}
		if p := b.box.Progress(shop); p.Refusal != "" || p.Rejected != 0 || p.Pending != 0 {
			t.Errorf("the progress is %+v, want nothing undelivered", p)
		}
		if got := b.box.State(status(1, "Down")); got.Receipt != (outbox.Receipt{}) {
			t.Errorf("the receipt is %+v, want none", got.Receipt)
		}
	})
}

func TestNotifier_Retries_FollowTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.ShutdownTimeout = time.Hour
		sender := fails(slices.Repeat([]error{errBusy}, 20)...)
		b := newBenchOf(config, outbox.Config{Backoff: outbox.Backoff{Base: time.Second, Max: 8 * time.Second}}, sender)
		b.settle(t, status(1, "Healthy"))
		if len(sender.sends) != 21 {
			t.Fatalf("sent %d times", len(sender.sends))
		}
		for i := range 20 {
			waited, limit := sender.sends[i+1].Sub(sender.sends[i]), min(time.Second<<i, 8*time.Second)
			if waited <= 0 || waited > limit {
				t.Errorf("wait %d is %s, want at most %s", i+1, waited, limit)
			}
		}
	})
}

func TestNotifier_RetryAfter_IsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.ShutdownTimeout = 24 * time.Hour
		waits := []time.Duration{7 * time.Second, 3 * time.Hour, time.Second}
		var errs []error
		for _, wait := range waits {
			errs = append(errs, &threeport.Error{StatusCode: 429, RetryAfter: wait})
		}
		sender := fails(errs...)
		newBench(config, sender).settle(t, status(1, "Healthy"))
		for i, want := range waits {
			if waited := sender.sends[i+1].Sub(sender.sends[i]); waited != want {
				t.Errorf("waited %s, want %s", waited, want)
			}
		}
	})
}

func TestNotifier_Retry_SendsTheNewestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		sender := fails(errBusy)
		b = newBench(DefaultConfig(), sender)
		answer := sender.answer
		sender.answer = func(ctx context.Context, item outbox.Item) (outbox.Receipt, error) {
			if item.Attempt == 1 {
				b.box.Offer(status(1, "Reconciling"))
				b.box.Offer(status(1, "Healthy"))
			}
			return answer(ctx, item)
		}
		stop := b.start(t)
		b.box.Offer(status(1, "Down"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := []string{"Down", "Healthy"}; !slices.Equal(sender.words, want) {
			t.Errorf("sent %q, want %q", sender.words, want)
		}
	})
}

func TestNotifier_Concurrency_IsBounded(t *testing.T) {
	for _, limit := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int32
			config := DefaultConfig()
			config.Concurrency = limit
			b := newBench(config, &script{answer: func(context.Context, outbox.Item) (outbox.Receipt, error) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return outbox.Receipt{}, nil
			}})
			for id := range int64(12) {
				b.box.Offer(status(id, "Healthy"))
			}
			start := time.Now()
			if err := b.start(t)(); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); most.Load() != int32(limit) || took != time.Duration(12/limit)*time.Second {
				t.Errorf("%d were sent at a time, and all took %s", most.Load(), took)
			}
		})
	}
}

func TestNotifier_Run_FlushesAtTheEnd(t *testing.T) {
	slow := func(d time.Duration) *script {
		return &script{answer: func(ctx context.Context, _ outbox.Item) (outbox.Receipt, error) {
			select {
			case <-time.After(d):
				return outbox.Receipt{}, nil
			case <-ctx.Done():
				return outbox.Receipt{}, &threeport.Error{Op: "send", Err: ctx.Err()}
			}
		}}
	}
	config := DefaultConfig()
	config.Concurrency = 2
	config.ShutdownTimeout = 10 * time.Second
	tests := []struct {
		reason string
		sender *script
		took   time.Duration
		left   int
	}{
		{"all is delivered in time", slow(time.Second), 3 * time.Second, 0},
		{"time is over before all is delivered", slow(4 * time.Second), 10 * time.Second, 2},
		{"a running request is cancelled", slow(time.Hour), 10 * time.Second, 6},
		{"what waits is not waited for", &script{answer: func(context.Context, outbox.Item) (outbox.Receipt, error) {
			return outbox.Receipt{}, &threeport.Error{StatusCode: 429, RetryAfter: time.Hour}
		}}, 10 * time.Second, 6},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(config, tt.sender)
				for id := range int64(6) {
					b.box.Offer(status(id, "Healthy"))
				}
				start := time.Now()
				err := b.start(t)()
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if (err != nil) != (tt.left > 0) || b.box.Pending() != tt.left {
					t.Errorf("%d are left, want %d; error %v", b.box.Pending(), tt.left, err)
				}
				b.box.Offer(status(99, "Healthy"))
				if b.box.Pending() != tt.left {
					t.Error("it takes in reports after its end")
				}
			})
		})
	}
}

func TestNotifier_Run_DurableReportsMayRemain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.Durable = true
		b := newBench(config, fails(errBusy, errBusy, errBusy, errBusy, errBusy, errBusy, errBusy, errBusy, errBusy, errBusy, errBusy))
		b.box.Offer(status(1, "Healthy"))
		if err := b.start(t)(); err != nil {
			t.Errorf("got %v, want no error: the report is in the state", err)
		}
		if b.box.Pending() != 1 || b.logged("Unsent reports remain") != 1 {
			t.Errorf("%d reports are pending, logs are %q; want one, and a line about it", b.box.Pending(), b.logs)
		}
	})
}

// A send that ends with the context of Run is neither a failure of the delivery nor tried again without end.
func TestNotifier_Run_CancelledSendIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender := &script{answer: func(ctx context.Context, _ outbox.Item) (outbox.Receipt, error) {
			<-ctx.Done()
			return outbox.Receipt{}, ctx.Err()
		}}
		config := DefaultConfig()
		config.Concurrency = 3
		b := newBench(config, sender)
		for id := range int64(9) {
			b.box.Offer(status(id, "Healthy"))
		}
		if err := b.start(t)(); err == nil {
			t.Error("no error about the remaining reports")
		}
		if len(sender.sends) != 3 || b.logged("Delivery fails") > 0 {
			t.Errorf("sent %d times, logged %q", len(sender.sends), b.logs)
		}
		if got := b.metric(t, "threeport_agent_reports_total", "status", "retried"); got != 0 {
			t.Errorf("%v are counted as retried", got)
		}
	})
}

func TestConfig_Validate(t *testing.T) {
	tests := []struct {
		reason string
		change func(*Config)
		valid  bool
	}{
		{"the defaults", func(*Config) {}, true},
		{"no concurrency", func(c *Config) { c.Concurrency = 0 }, false},
		{"the least", func(c *Config) { c.Concurrency = 1 }, true},
		{"too much", func(c *Config) { c.Concurrency = 257 }, false},
		{"no time to stop", func(c *Config) { c.ShutdownTimeout = 0 }, false},
	}
	for _, tt := range tests {
		c := DefaultConfig()
		tt.change(&c)
		if err := c.Validate(); (err == nil) != tt.valid {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
}
