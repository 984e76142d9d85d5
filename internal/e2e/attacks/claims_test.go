package attacks

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/databases"
)

// answer sends a request and returns the code and the text of the answer.
func (a *api) answer(bearer, method, path, body string) (code int, text string) {
	a.Helper()
	req, err := http.NewRequestWithContext(a.Context(), method, a.url+path, strings.NewReader(body))
	a.must(err)
	req.Header.Set("Authorization", bearer)
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	a.must(err)
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	a.must(err)
	return resp.StatusCode, string(content)
}

// statusSet is a report set of a cluster with the status of a workload.
func statusSet(cluster string, instance int64) string {
	return fmt.Sprintf(`{"agent":{"clusterUID":%q,"time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0},
		"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"1","status":{"status":"Healthy"}}]}`, cluster, instance)
}

// An agent tries to read and to take a workload that upstream has just registered for another cluster, which has not reported it.
func TestClaims_AgentTakesWorkloadOfOtherCluster(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		s, err := store.Open(t.Context(), store.Config{Address: address})
		a.must(err)
		fresh := a.register(s, "fresh")
		a.must(s.Close())
		a.start()

		const sets = "/v0/workload-report-sets"
		instance, resource := fmt.Sprintf("/v0/workload-instances/%d", fresh.instance), fmt.Sprintf("/v0/workload-resource-instances/%d", fresh.resource)
		attack := func(when string) {
			t.Helper()
			for _, try := range []struct{ method, path, body string }{
				{"GET", instance, ""},
				{"GET", resource, ""},
				{"GET", fmt.Sprintf("/v0/workload-events?workloadinstanceid=%d", fresh.instance), ""},
				{"PATCH", instance, `{"Status":"Down"}`},
				{"PATCH", resource, `{"LastOperation":"DELETED"}`},
				{"POST", "/v0/workload-events", fmt.Sprintf(`{"RuntimeEventUID":"u","Type":"Normal","Reason":"r","Message":"m",
					"Timestamp":"2026-01-02T03:04:05Z","WorkloadInstanceID":%d}`, fresh.instance)},
			} {
				if code, text := a.answer(a.agent, try.method, try.path, try.body); code != http.StatusForbidden || strings.Contains(text, "Confidential") {
					t.Errorf("%s, another cluster's agent gets %[4]d %[5]s for %[2]s %[3]s, want 403", when, try.method, try.path, code, text)
				}
			}
			if _, text := a.answer(a.agent, "POST", sets, statusSet(ownCluster, fresh.instance)); !strings.Contains(text, `"forbidden"`) {
				t.Errorf("%s, a report of another cluster's agent is answered %s, want forbidden", when, text)
			}
		}
		attack("before the assignment")
		assignment := fmt.Sprintf("/v0/workloads/WorkloadInstance/%d/cluster", fresh.instance)
		for role, bearer := range map[string]string{"an agent": a.agent, "a viewer": a.viewer} {
			if code, _ := a.answer(bearer, "PUT", assignment, `{"clusterUID":"`+ownCluster+`"}`); code != http.StatusForbidden {
				t.Errorf("an assignment by %s is answered %d, want 403", role, code)
			}
		}
		if code, text := a.answer(a.admin, "PUT", assignment, `{"clusterUID":"`+honestCluster+`"}`); code != http.StatusOK {
			t.Errorf("the assignment is answered %d %s, want 200", code, text)
		}
		attack("after the assignment")
		if _, text := a.answer(a.honest, "POST", sets, statusSet(honestCluster, fresh.instance)); !strings.Contains(text, `"created"`) {
			t.Errorf("the report of the assigned cluster's agent is answered %s, want created", text)
		}
		if code, text := a.answer(a.honest, "GET", resource, ""); code != http.StatusOK || !strings.Contains(text, "Confidential") {
			t.Errorf("the agent of the assigned cluster reads %d %s, want the definition", code, text)
		}
	})
}
