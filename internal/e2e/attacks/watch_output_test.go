package attacks

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A viewer has as many watches as permitted while the statuses of a fleet change. Their output is bounded, because it takes the
// processors from honest agents. With -measure it compares the latency of these before.
func TestWatches_OneViewer_OutputIsBounded(t *testing.T) {
	const (
		workloads = 250
		watches   = 200
		during    = 4 * time.Second
		rate      = 4 << 20            // bytes per second of a principal
		ahead     = 8 << 20            // bytes of a principal at once
		batches   = watches * 20 << 10 // bytes: each watch may send a batch before it waits
	)
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		set := a.statuses(workloads, threeport.StatusReport{Reason: "CrashLoopBackOff", Cause: "pod web-66c6ccd947-bh2rs: container web is waiting"})
		a.start()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { a.changeStatuses(ctx, set) })
		if *measure > 0 {
			a.compareLatency(watches, attempt{"a viewer has 200 watches", a.viewer, http.MethodGet, "/v0/workloads/watch", body{}, nil})
		}
		var received atomic.Int64
		begin := time.Now()
		for range watches {
			stream := a.openWatch(ctx)
			all.Go(func() {
				defer stream.Close() //nolint:errcheck // the test ends it
				n, _ := io.Copy(io.Discard, stream)
				received.Add(n)
			})
		}
		end := time.NewTimer(during)
		defer end.Stop()
		<-end.C
		cancel()
		all.Wait()
		took := time.Since(begin)
		t.Logf("the watches received %d MiB in %s", received.Load()>>20, took)
		if most := ahead + batches + int64(rate*took.Seconds()); received.Load() > most {
			t.Errorf("the watches received %d MiB in %s, want at most %d", received.Load()>>20, took, most>>20)
		}
		if received.Load() < watches<<10 {
			t.Errorf("the watches received %d bytes, want the changes", received.Load())
		}
		a.expectAlive()
	})
}

// changeStatuses reports two statuses of workloads by turns, five times per second.
func (a *api) changeStatuses(ctx context.Context, set threeport.ReportSet) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for round := 0; ctx.Err() == nil; round++ {
		now := time.Now()
		set.Agent.Time = now
		for i := range set.Reports {
			set.Reports[i].Version = threeport.ID(now.UnixMicro())
			set.Reports[i].Status.Status = []string{"Down", "Healthy"}[round%2]
		}
		if err := a.trySendCompressed(ctx, a.agent, set); err != nil && ctx.Err() == nil {
			a.Errorf("the statuses of the fleet: %v", err)
		}
		<-tick.C
	}
}
