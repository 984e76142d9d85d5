package notify

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

// The number of concurrent requests changes while the notifier delivers, and no report is lost.
func TestNotifier_SetConcurrency_WhileItDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, delivered atomic.Int64
		sender := &script{answer: func(context.Context, outbox.Item) (outbox.Receipt, error) {
			running.Add(1)
			defer running.Add(-1)
			time.Sleep(time.Minute)
			delivered.Add(1)
			return outbox.Receipt{}, nil
		}}
		config := DefaultConfig()
		config.Concurrency = 2
		b := newBench(config, sender)
		const reports = 100
		for id := range int64(reports) {
			b.box.Offer(status(id+1, "Healthy"))
		}
		stop := b.start(t)
		for i, concurrency := range []int{2, 8, 1, 4} {
			if i > 0 {
				b.SetConcurrency(concurrency)
				b.SetConcurrency(concurrency) // the second has no effect
			}
			time.Sleep(97 * time.Second) // requests that were under way have ended, and none ends now
			if n := running.Load(); n != int64(concurrency) {
				t.Errorf("%d requests at a time, want %d", n, concurrency)
			}
		}
		for b.box.Pending() > 0 {
			time.Sleep(time.Minute)
		}
		if err := stop(); err != nil || delivered.Load() != reports {
			t.Errorf("%d of %d reports are delivered: %v", delivered.Load(), reports, err)
		}
	})
}
