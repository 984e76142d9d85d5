package attacks

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxDelay bounds the delay of requests by others during searches. A report took 16 s, and a viewer's list more than 12 s.
const maxDelay = 5 * time.Second

// Viewers search stored texts that nearly match at every place.
func TestSearches_OtherRequestsAreNotDelayed(t *testing.T) {
	const longest = 64 // of a text to search for
	nearMatch := strings.Repeat("a", longest-1) + "b"
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		text := fmt.Sprintf("repeat('a', %d)", 64<<10)
		if strings.HasPrefix(address, "sqlite:") {
			text = fmt.Sprintf("replace(hex(zeroblob(%d)), '00', 'a')", 64<<10)
		}
		a.exec(fmt.Sprintf(`WITH RECURSIVE x(message) AS (SELECT %s), n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2400)
			INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid)
			SELECT i, 1, 1, 'long-' || i, 'Warning', 'R', message, %d, %d FROM n, x`, text, time.Now().UnixMicro(), a.foreign.instance))
		a.exec(fmt.Sprintf(`WITH RECURSIVE x(cause) AS (SELECT %s), n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
			INSERT INTO workloads (type, id, name, cause, changedat) SELECT 'WorkloadInstance', i, 'w', cause, 1 FROM n, x`, text))
		a.start()
		timeline := fmt.Sprintf("/v0/workloads/WorkloadInstance/%d/events?text=", a.foreign.instance)
		if code, _, err := a.request(t.Context(), a.viewer, http.MethodGet, timeline+nearMatch+"a", http.NoBody); code != http.StatusUnprocessableEntity {
			t.Errorf("a search for %d characters: the answer is %d, %v, want %d", longest+1, code, err, http.StatusUnprocessableEntity)
		}
		for _, path := range []string{timeline + nearMatch, "/v0/workloads?text=" + nearMatch, "/v0/workload-events?message=x"} {
			t.Run(path, func(t *testing.T) {
				a.expectNoDelay(t, path)
			})
		}
		a.expectAlive()
	})
}

// expectNoDelay repeats a search of one viewer on many connections, and measures requests of others.
func (a *api) expectNoDelay(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	answers := map[int]int{}
	var searches sync.WaitGroup
	for range 20 {
		searches.Go(func() {
			for ctx.Err() == nil {
				code, _, _ := a.request(ctx, a.viewer, http.MethodGet, path, http.NoBody)
				mu.Lock()
				answers[code]++
				mu.Unlock()
			}
		})
	}
	get := func(bearer, path string) error {
		code, _, err := a.request(ctx, bearer, http.MethodGet, path, http.NoBody)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("the answer is %d", code)
		}
		return err
	}
	slowest := map[string]time.Duration{}
	tick := time.NewTicker(100 * time.Millisecond) // a viewer may send 50 requests per second
	defer tick.Stop()
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); <-tick.C {
		for request, send := range map[string]func() error{
			"a report of another agent":  func() error { return a.report(ctx, time.Now().String()) },
			"the readiness probe":        func() error { return get("", "/readyz") },
			"a list by another viewer":   func() error { return get(a.otherViewer, "/v0/workloads?size=1") },
			"a search by another viewer": func() error { return get(a.otherViewer, "/v0/workloads?text=web") },
			"a list of Events by another agent": func() error {
				return get(a.honest, fmt.Sprintf("/v0/workload-events?workloadinstanceid=%d", a.honestly.instance))
			},
		} {
			begin := time.Now()
			if err := send(); err != nil {
				t.Errorf("%s during searches: %v", request, err)
			}
			slowest[request] = max(slowest[request], time.Since(begin))
		}
	}
	cancel()
	searches.Wait()
	t.Logf("answers to the searches by code %v, 0 for those under way at the end; slowest requests of others %v", answers, slowest)
	for request, took := range slowest {
		if took > maxDelay {
			t.Errorf("%s took %s during searches, want at most %s", request, took, maxDelay)
		}
	}
}
