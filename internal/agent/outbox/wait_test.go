package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutbox_Nack_WaitsBeforeTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(at("a", "1"))
		item, _ := next(t, o)
		for attempt, wait := range []time.Duration{time.Millisecond, time.Minute, 0, 3 * time.Hour} {
			o.Retry(item, wait, errSend)
			expectPending(t, o, 1, 1)
			var waited time.Duration
			if item, waited = next(t, o); waited != wait || item.Attempt != attempt+2 {
				t.Errorf("attempt %d came after %s, want %s", item.Attempt, waited, wait)
			}
		}
	})
}

func TestOutbox_Nack_HoldsItsGroupOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(in("group", "a", "1"))
		item, _ := next(t, o)
		o.Retry(item, time.Minute, errSend)
		o.Offer(in("group", "b", "1")) // does not wake the group
		o.Offer(at("c", "1"))
		if item, waited := next(t, o); fmt.Sprint(item.Report) != "c@1" || waited != 0 {
			t.Errorf("took %s after %s", item.Report, waited)
		}
		time.Sleep(20 * time.Second)
		o.Offer(in("group", "a", "2")) // replaces what waits, and does not send it earlier
		item, waited := next(t, o)
		if fmt.Sprint(item.Report) != "a@2" || waited != 40*time.Second || item.Attempt != 2 {
			t.Errorf("took %s after %s, attempt %d", item.Report, waited, item.Attempt)
		}
		o.Ack(item, Receipt{})
		if item, waited := next(t, o); fmt.Sprint(item.Report) != "b@1" || waited != 0 {
			t.Errorf("took %s after %s", item.Report, waited)
		}
	})
}

func TestOutbox_Cancel_ReleasesTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(in("group", "a", "1"))
		item, _ := next(t, o)
		o.Retry(item, time.Minute, errSend)
		o.Offer(in("group", "b", "1"))
		o.Cancel("a")
		item, waited := next(t, o)
		if fmt.Sprint(item.Report) != "b@1" || waited != 0 {
			t.Errorf("took %s after %s", item.Report, waited)
		}
		o.Ack(item, Receipt{})
		o.Offer(in("group", "a", "2")) // is left alone as long as the control plane asked for
		if item, waited := next(t, o); fmt.Sprint(item.Report) != "a@2" || waited != time.Minute {
			t.Errorf("took %s after %s", item.Report, waited)
		}
	})
}

func TestOutbox_Next_ReadyAndDueTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		for i := range 3 {
			o.Offer(at(fmt.Sprint("late", i), "1"))
		}
		var late []Item
		for range 3 {
			item, _ := next(t, o)
			late = append(late, item)
		}
		for i, item := range late {
			o.Retry(item, time.Duration(3-i)*time.Second, errSend)
		}
		time.Sleep(2 * time.Second)
		o.Offer(at("new", "1"))
		time.Sleep(2 * time.Second)
		for _, want := range []string{"late2@1", "late1@1", "new@1", "late0@1"} {
			expectTake(t, o, want)
		}
	})
}

func TestOutbox_Next_WaitsForAnOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		time.AfterFunc(time.Hour, func() { o.Offer(at("a", "1")) })
		if item, waited := next(t, o); waited != time.Hour || fmt.Sprint(item.Report) != "a@1" {
			t.Errorf("took %s after %s", item.Report, waited)
		}
		time.AfterFunc(time.Minute, func() { o.Offer(at("b", "1")) })
		if item, waited := next(t, o); waited != time.Minute || fmt.Sprint(item.Report) != "b@1" {
			t.Errorf("took %s after %s", item.Report, waited)
		}
	})
}

// A report that is due earlier wakes all takers.
func TestOutbox_Next_ServesAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(at("late", "1"))
		item, _ := next(t, o)
		o.Retry(item, time.Hour, errSend)
		var waiters sync.WaitGroup
		start := time.Now()
		for range 3 {
			waiters.Go(func() {
				item, _ := next(t, o)
				o.Ack(item, Receipt{})
			})
		}
		synctest.Wait()
		o.Offer(at("a", "1"))
		o.Offer(at("b", "1"))
		waiters.Wait()
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("all were served after %s", waited)
		}
		expectPending(t, o, 0, 0)
	})
}

// An Offer wakes one taker. If that one ends with its context, another takes the report.
func TestOutbox_Next_TakerEnds_AnotherTakes(t *testing.T) {
	for range 100 { // the runtime chooses at random what the first taker sees
		synctest.Test(t, func(t *testing.T) {
			o := New(Config{}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			taken := make(chan Item, 2)
			var takers sync.WaitGroup
			for _, ctx := range []context.Context{ctx, t.Context()} {
				takers.Go(func() {
					if item, err := o.Next(ctx); err == nil {
						taken <- item
					}
				})
				synctest.Wait()
			}
			cancel()
			o.Offer(at("a", "1"))
			o.Ack(<-taken, Receipt{})
			o.Close()
			takers.Wait()
		})
	}
}

// Close ends all takers, although a change wakes one.
func TestOutbox_Close_EndsAllTakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Config{}, nil)
		var takers sync.WaitGroup
		for range 5 {
			takers.Go(func() {
				if item, err := o.Next(t.Context()); !errors.Is(err, ErrClosed) {
					t.Errorf("took %v, %v", item.Report, err)
				}
			})
		}
		synctest.Wait()
		o.Close()
		takers.Wait()
	})
}

func TestOutbox_Next_EndsWithItsContext(t *testing.T) {
	errStop := errors.New("stop")
	t.Run("while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errStop) })
			if _, err := New(Config{}, nil).Next(ctx); !errors.Is(err, errStop) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("also when something is ready: a caller that stops puts back what it took", func(t *testing.T) {
		o := New(Config{}, nil)
		o.Offer(at("a", "1"))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStop)
		if _, err := o.Next(ctx); !errors.Is(err, errStop) {
			t.Errorf("got %v", err)
		}
		expectTake(t, o, "a@1")
	})
}

func TestOutbox_Close_EndsNextWhenAllIsSettled(t *testing.T) {
	tests := []struct {
		reason string
		do     func(t *testing.T, o *Outbox)
		want   time.Duration
	}{
		{"nothing is pending", func(*testing.T, *Outbox) {}, 0},
		{"one is in flight and accepted later", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			time.AfterFunc(time.Minute, func() { o.Ack(item, Receipt{}) })
		}, time.Minute},
		{"one is in flight and rejected later", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			time.AfterFunc(time.Minute, func() { o.Reject(item, errSend) })
		}, time.Minute},
		{"one waits to be sent again, and is at once", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			o.Retry(take(t, o), time.Hour, errSend)
			time.AfterFunc(time.Minute, func() { o.Offer(at("b", "1")) }) // too late
		}, 0},
		{"one fails after the end of intake, and waits", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			time.AfterFunc(time.Minute, func() { o.Retry(item, time.Hour, errSend) })
		}, time.Minute + time.Hour},
		{"one that waits is cancelled", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			time.AfterFunc(time.Second, func() { o.Retry(item, time.Hour, errSend) })
			time.AfterFunc(time.Minute, func() { o.Cancel("a") })
		}, time.Minute},
		{"one is in flight, is cancelled and fails", func(t *testing.T, o *Outbox) {
			t.Helper()
			o.Offer(at("a", "1"))
			item := take(t, o)
			o.Cancel("a")
			time.AfterFunc(time.Minute, func() { o.Retry(item, time.Hour, errSend) })
		}, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := New(Config{}, nil)
				tt.do(t, o)
				o.Close()
				start := time.Now()
				for {
					item, err := o.Next(t.Context())
					if err != nil {
						if !errors.Is(err, ErrClosed) || time.Since(start) != tt.want {
							t.Errorf("Next returned %v after %s, want after %s", err, time.Since(start), tt.want)
						}
						break
					}
					o.Ack(item, Receipt{})
				}
				o.Offer(at("c", "1"))
				if _, err := o.Next(t.Context()); !errors.Is(err, ErrClosed) {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}
