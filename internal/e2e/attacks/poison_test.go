package attacks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Long texts that were stored, by an earlier version or by an agent, are read by viewers.
func TestMemory_ViewersReadLongStoredTexts(t *testing.T) {
	onDatabases(t, func(t *testing.T, address string) {
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
		timeline := fmt.Sprintf("/v0/workloads/WorkloadInstance/%d/events?size=1000", a.foreign.instance)
		for _, try := range []attempt{
			{"the timeline", a.viewer, http.MethodGet, timeline, body{}, []int{200, 429, 503}},
			{"a search in the timeline", a.viewer, http.MethodGet, timeline + "&text=xy", body{}, []int{200, 429, 503}},
			{"a list", a.viewer, http.MethodGet, "/v0/workload-events", body{}, []int{200, 429, 503}},
			{"a list of all", a.viewer, http.MethodGet, "/v0/workload-events?size=-1", body{}, []int{200, 429, 503}},
			{"a list by message", a.viewer, http.MethodGet, "/v0/workload-events?message=x", body{}, []int{200, 429, 503}},
			{"an Event", a.viewer, http.MethodGet, "/v0/workload-events/1", body{}, []int{200, 429, 503}},
		} {
			a.repeat(8, try)
		}
		a.expectAlive()
	})
}

// Viewers request the largest answers on many connections, and do not read them.
func TestMemory_ViewersDoNotReadAnswers(t *testing.T) {
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		longText := func(piece string, size int) string {
			if strings.HasPrefix(address, "sqlite:") {
				return fmt.Sprintf("replace(hex(zeroblob(%d)), '00', '%s')", size, piece)
			}
			return fmt.Sprintf("repeat('%s', %d)", piece, size)
		}
		// A tree of the largest size that an agent can report in 16 MiB, Events whose text is six times as long in JSON, and
		// an object.
		a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
			INSERT INTO objects (type, id, key, clusteruid, uid, kind, name, health, since, cause)
			SELECT 'WorkloadInstance', %d, 'pod-' || i, '%s', 'pod-' || i, 'Pod', 'web-' || i, 'Healthy', 1, %s FROM n`, a.foreign.instance, foreignCluster, longText("x", 500)))
		a.exec(fmt.Sprintf(`WITH RECURSIVE x(message) AS (SELECT %s), n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
			INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid)
			SELECT i, 1, 1, 'long-' || i, 'Normal', 'R', message, %d, %d FROM n, x`, longText("<", 64<<10), time.Now().UnixMicro(), a.foreign.instance))
		a.exec(fmt.Sprintf(`INSERT INTO definitions (clusteruid, uid, type, id, kind, name, operation, version, current, previous, at, previousat)
			SELECT '%s', 'web', 'WorkloadInstance', %d, 'ConfigMap', 'web', 'MODIFIED', 1, x, '{"before":1,' || substr(x, 2), 1, 1
			FROM (SELECT '{"data":{"text":"' || %s || '"}}' AS x) AS large`, foreignCluster, a.foreign.instance, longText("x", 4<<20-100)))
		a.start()
		workload := fmt.Sprintf("/v0/workloads/WorkloadInstance/%d", a.foreign.instance)
		for _, path := range []string{workload, workload + "/events?size=1000", "/v0/workload-events?size=1000", "/v0/clusters/" + foreignCluster + "/objects/web"} {
			answers := a.withoutReading(a.viewer, path)
			t.Logf("%s: answers by code %v", path, answers)
			if answers[http.StatusOK] == 0 {
				t.Errorf("%s: no viewer got an answer", path)
			}
		}
		a.expectAlive()
	})
}

// withoutReading requests an answer on several connections. No client reads more than the header until all have one. It returns
// the answers by code.
func (a *api) withoutReading(bearer, path string) map[int]int {
	a.Helper()
	answers := make(chan *http.Response)
	const clients = 40
	for range clients {
		go func() {
			req, err := http.NewRequestWithContext(a.Context(), http.MethodGet, a.url+path, http.NoBody)
			if err != nil {
				a.Error(err)
			}
			req.Header.Set("Authorization", bearer)
			resp, err := a.client.Do(req) //nolint:bodyclose // the receiver closes it
			if err != nil {
				resp = &http.Response{Body: http.NoBody} // the API cut it off
			}
			answers <- resp
		}()
	}
	codes := map[int]int{}
	for range clients {
		resp := <-answers
		defer func() { _ = resp.Body.Close() }()
		codes[resp.StatusCode]++
	}
	return codes
}
