package attacks

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

var eventCount = flag.Int("events", 150_000, "`number` of Events that a viewer lists")

// A viewer repeats a list of all Events on several connections.
func TestMemory_ViewerListsAllEvents(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		const message = "Back-off restarting failed container web in pod web-66c6ccd947-bh2rs_default(0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d)"
		a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp)
			SELECT i, 1, 1, 'event-' || i, 'Warning', 'BackOff', '%s', %d FROM n`, *eventCount, message, time.Now().UnixMicro()))
		a.start()
		if *measure > 0 {
			a.compareLatency(4, attempt{reason: "a list of all Events", bearer: a.viewer, method: http.MethodGet, path: "/v0/workload-events?size=-1"})
		}

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		complete := make(chan struct{}, 1)
		var viewers sync.WaitGroup
		for range 4 {
			viewers.Go(func() {
				for ctx.Err() == nil && a.listAll(ctx, int64(*eventCount*len(message)), complete) {
				}
			})
		}
		for range 2 {
			select {
			case <-complete:
			case <-time.After(5 * time.Minute):
				t.Error("no list of all Events was complete within 5 minutes")
			}
		}
		cancel()
		viewers.Wait()
		a.expectAlive()
	})
}

// listAll lists all Events as a viewer, and reports whether the API answered as it should. It sends to complete after a whole
// answer, which has at least a number of bytes.
func (a *api) listAll(ctx context.Context, least int64, complete chan<- struct{}) bool {
	begin := time.Now()
	code, size, err := a.request(ctx, a.viewer, http.MethodGet, "/v0/workload-events?size=-1", http.NoBody)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil || code != http.StatusOK && code != http.StatusServiceUnavailable && code != http.StatusTooManyRequests:
		a.Errorf("a list of all Events: %d, %v, want 200, 429 or 503", code, err)
		return false
	case code != http.StatusOK:
		return true
	case size < least:
		a.Errorf("a list of all Events has %d bytes, want at least %d", size, least)
		return false
	}
	a.Logf("a list of all Events: %d MiB in %s", size>>20, time.Since(begin).Round(100*time.Millisecond))
	select {
	case complete <- struct{}{}:
	default:
	}
	return true
}
