package attacks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// logWait bounds the waits of these tests.
const logWait = 2 * time.Minute

// changeEachStatus sends a set of the attacking agent, in which the status of each workload changes.
func (a *api) changeEachStatus(set threeport.ReportSet, n int) {
	a.Helper()
	for i := range set.Reports {
		set.Reports[i].Version = threeport.ID(n + 2)
		set.Reports[i].Status.Status = []string{"Unhealthy", "Healthy"}[n%2]
	}
	a.must(a.trySendCompressed(a.Context(), a.agent, set))
}

// An agent changes the statuses of its workloads, with long causes, while the backend of logs asks for a long pause.
func TestDisk_AgentChangesStatuses_LogQueueIsBounded(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(backend.Close)
		a := newAPI(t, address)
		const workloads, rounds, bound = 500, 40, 256 << 20
		set := a.statuses(workloads, threeport.StatusReport{Cause: strings.Repeat("\U0001F600", 5000)})
		a.start("--otlp-logs-endpoint=" + backend.URL)
		a.must(a.report(t.Context(), "honest"))
		a.changeEachStatus(set, 0)
		begin := time.Now()
		for range rounds { // as the agent does within some minutes
			a.exec("UPDATE workloads SET status = CASE status WHEN 'Healthy' THEN 'Unhealthy' ELSE 'Healthy' END WHERE clusteruid = '" + ownCluster + "'")
		}
		size := func() int64 { return a.number("SELECT COALESCE(SUM(octet_length(cause)), 0) FROM log_queue") }
		t.Logf("after %d status changes in %v, log_queue has %d MiB of causes", rounds*workloads, time.Since(begin), size()>>20)
		for size() > bound {
			if time.Since(begin) > logWait {
				t.Fatalf("log_queue has %d MiB of causes after %v, want at most %d", size()>>20, logWait, bound>>20)
			}
		}
		t.Logf("after %v, it has %d MiB", time.Since(begin), size()>>20)
		if n := a.number("SELECT COUNT(*) FROM log_queue WHERE eventid IS NOT NULL"); n != 1 {
			t.Errorf("%d records of the honest cluster wait, want 1", n)
		}
		a.expectAlive()
	})
}

// An agent sends status changes that the backend of logs refuses. The records of others are exported meanwhile.
func TestLogs_AgentSendsRefusedRecords_OthersAreExported(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		const refused, honest, sets, bound = "refused", "honest-record", 5, 200
		opened, arrived := make(chan struct{}), make(chan struct{})
		var requests atomic.Int64
		var once sync.Once // a record may arrive again
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			select {
			case <-opened:
			case <-r.Context().Done():
				return
			}
			select {
			case <-arrived:
			default:
				requests.Add(1)
			}
			switch {
			case bytes.Contains(body, []byte(refused)):
				w.WriteHeader(http.StatusBadRequest)
			case bytes.Contains(body, []byte(honest)):
				once.Do(func() { close(arrived) })
			}
		}))
		t.Cleanup(backend.Close)
		a := newAPI(t, address)
		set := a.statuses(1000, threeport.StatusReport{Reason: refused})
		a.start("--otlp-logs-endpoint=" + backend.URL)
		for n := range sets {
			a.changeEachStatus(set, n)
		}
		a.must(a.report(t.Context(), honest))
		close(opened)
		ctx, cancel := context.WithTimeout(t.Context(), logWait)
		defer cancel()
		begin := time.Now()
		select {
		case <-arrived:
		case <-ctx.Done():
		}
		t.Logf("beside %d refused records, the honest one arrived after %d requests and %v", sets*1000, requests.Load(), time.Since(begin))
		if n := requests.Load(); n > bound || ctx.Err() != nil {
			t.Errorf("there were %d requests before the honest record, want at most %d: %s", n, bound, fmt.Sprint(ctx.Err()))
		}
	})
}
