package attacks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// One sender repeats a request, each of which is permitted and takes the API longer than most. Others without a credential repeat
// requests that are refused.
func TestRepeats(t *testing.T) {
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		const message = "Back-off restarting failed container web in pod web-66c6ccd947-bh2rs_default(0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d)"
		a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
			INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid)
			SELECT i, 1, 1, 'event-' || i, 'Warning', 'BackOff', '%s', %d, %d FROM n`, message, time.Now().UnixMicro(), a.own.instance))
		a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
			INSERT INTO objects (type, id, key, clusteruid, uid, kind, name, health, since, cause)
			SELECT 'WorkloadInstance', %d, 'pod-' || i, '%s', 'pod-' || i, 'Pod', 'web-' || i, 'Healthy', 1, 'Running' FROM n`, a.own.instance, ownCluster))
		a.start()
		workload, ownResource := fmt.Sprintf("/v0/workloads/WorkloadInstance/%d", a.own.instance), fmt.Sprintf("/v0/workload-resource-instances/%d", a.own.resource)
		served := []int{http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable}
		refused := []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable}
		for _, try := range []attempt{
			{
				"an agent sends requests beyond its rate", a.agent, http.MethodPatch, ownResource, body{Before: `{"LastOperation":"MODIFIED"}`}, served,
			},
			{
				"an agent lists its Events", a.agent, http.MethodGet, fmt.Sprintf("/v0/workload-events?size=1000&workloadinstanceid=%d", a.own.instance), body{}, served,
			},
			{
				"an agent reports sets of 1,000 new Events", a.agent, http.MethodPost, "/v0/workload-report-sets", body{Before: a.newEvents(1000)}, served,
			},
			{
				"an agent reports definitions just below 64 KiB", a.agent, http.MethodPatch, ownResource,
				body{`{"RuntimeDefinition":[0`, `,{"b":0,"a":0}`, `]}`, 63 << 10},
				served,
			},
			{
				"a viewer reads a workload of 15,000 objects", a.viewer, http.MethodGet, workload, body{}, served,
			},
			{
				"a viewer asks for the headers of that workload", a.viewer, http.MethodHead, workload, body{}, served,
			},
			{
				"a viewer reads the metrics", a.viewer, http.MethodGet, "/metrics", body{}, served,
			},
			{
				"a viewer asks for the audit log", a.viewer, http.MethodGet, "/v0/audit-records", body{}, []int{http.StatusForbidden},
			},
			{
				"a client has an unknown credential", "Bearer unknown", http.MethodGet, "/v0/workloads", body{}, refused,
			},
			{
				"a client has no credential and reads the health", "", http.MethodGet, "/healthz", body{}, []int{http.StatusOK},
			},
			{
				"a client logs in with an unknown credential", "", http.MethodPost, "/login", body{Before: "token=unknown"}, refused,
			},
		} {
			a.repeat(16, try)
		}
		a.expectAlive()
	})
}

// newEvents is a report set of the attacking agent with Events. Their UIDs begin with a nonce.
func (a *api) newEvents(number int) string {
	set := threeport.ReportSet{Agent: threeport.Agent{ClusterUID: ownCluster, Time: time.Now()}}
	for i := range number {
		set.Reports = append(set.Reports, threeport.Report{
			Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(a.own.instance)},
			Version:  1,
			Event:    &threeport.EventReport{UID: fmt.Sprint(nonce, "-", i), Type: "Normal", Reason: "Created", Message: "created a container", Time: time.Now()},
		})
	}
	text, err := json.Marshal(set)
	a.must(err)
	return string(text)
}
