package attacks

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

// Long texts that were stored, by an earlier version or by an agent, are read by viewers.
func TestMemory_ViewersReadLongStoredTexts(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		insert := func(first, n, size int) {
			t.Helper()
			longText := fmt.Sprintf("repeat('x', %d)", size)
			if strings.HasPrefix(address, "sqlite:") {
				longText = fmt.Sprintf("replace(hex(zeroblob(%d)), '00', 'x')", size)
			}
			a.exec(fmt.Sprintf(`WITH RECURSIVE x(message) AS (SELECT %s), n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %d)
				INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid)
				SELECT i, 1, 1, 'long-' || i, 'Normal', 'R', message, %d, %d FROM n, x`, longText, first, first+n, time.Now().UnixMicro(), a.foreign.instance))
		}
		insert(1, 8, 30<<20)     // by an earlier version
		insert(100, 100, 64<<10) // by an agent
		a.start()
		nothing := func() io.Reader { return http.NoBody }
		timeline := fmt.Sprintf("/v0/workloads/WorkloadInstance/%d/events?size=1000", a.foreign.instance)
		for _, try := range []attempt{
			{"the timeline", a.viewer, http.MethodGet, timeline, nothing, []int{200, 429, 503}},
			{"a search in the timeline", a.viewer, http.MethodGet, timeline + "&text=xy", nothing, []int{200, 429, 503}},
			{"a list", a.viewer, http.MethodGet, "/v0/workload-events", nothing, []int{200, 429, 503}},
			{"a list of all", a.viewer, http.MethodGet, "/v0/workload-events?size=-1", nothing, []int{200, 429, 503}},
			{"a list by message", a.viewer, http.MethodGet, "/v0/workload-events?message=x", nothing, []int{200, 429, 503}},
			{"an Event", a.viewer, http.MethodGet, "/v0/workload-events/1", nothing, []int{200, 429, 503}},
		} {
			a.repeat(8, time.Second, try)
		}
		a.expectAlive()
	})
}
