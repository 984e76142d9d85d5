package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/threeport/threeport-agent/internal/controlplane"
)

// estate is rows of v0 that belong to a workload.
type estate struct{ instance, resource, event int64 }

// An agent may touch rows of its own cluster's workloads, and of those that are nobody's yet, through v0 too.
func TestAgentsKeepToTheirCluster(t *testing.T) {
	url, client, token := secured(t)
	admin, own, other := token("admin", ""), token("agent", "c"), token("agent", "other")
	ask := func(bearer, method, path, body string) (int, int64) {
		t.Helper()
		got := send(t, client, method, url+"/v0/"+path, asJSON("Authorization", bearer), []byte(body))
		var envelope controlplane.Response[struct{ ID int64 }]
		if err := json.Unmarshal([]byte(got.body), &envelope); err == nil && len(envelope.Data) == 1 {
			return got.code, envelope.Data[0].ID
		}
		return got.code, 0
	}
	makeEstate := func(name string) (e estate) {
		t.Helper()
		_, e.instance = ask(admin, http.MethodPost, "workload-instances", `{"Name":"`+name+`"}`)
		_, e.resource = ask(admin, http.MethodPost, "workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, e.instance))
		var code int
		if code, e.event = ask(admin, http.MethodPost, "workload-events", eventOf(name, e.instance)); code != http.StatusCreated {
			t.Fatalf("make the rows of %s: %d", name, code)
		}
		return e
	}
	owned, free := makeEstate("owned"), makeEstate("free")
	claim := fmt.Sprintf(`{"agent":{"clusterUID":"c","time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0},
		"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"1","status":{"status":"Healthy"}}]}`, owned.instance)
	if code, _ := ask(own, http.MethodPost, "workload-report-sets", claim); code != http.StatusOK {
		t.Fatalf("claim a workload: %d", code)
	}
	for _, tc := range []struct {
		reason, method, path, body string
		own, other                 int
	}{
		{"a status", "PATCH", fmt.Sprintf("workload-instances/%d", owned.instance), `{"Status":"Down"}`, 200, 403},
		{"a name is not for agents", "PATCH", fmt.Sprintf("workload-instances/%d", owned.instance), `{"Name":"x"}`, 403, 403},
		{"a workload of nobody", "PATCH", fmt.Sprintf("workload-instances/%d", free.instance), `{"Status":"Down"}`, 200, 200},
		{"a resource", "PATCH", fmt.Sprintf("workload-resource-instances/%d", owned.resource), `{"LastOperation":"ADDED"}`, 200, 403},
		{"reading a resource", "GET", fmt.Sprintf("workload-resource-instances/%d", owned.resource), "", 200, 403},
		{"reading a list", "GET", fmt.Sprintf("workload-events?workloadinstanceid=%d", owned.instance), "", 200, 403},
		{"a new Event", "POST", "workload-events", eventOf("new", owned.instance), 201, 403},
		{"an Event of nobody", "POST", "workload-events", `{"RuntimeEventUID":"n","Type":"Normal","Reason":"r","Message":"m","Timestamp":"2026-01-02T03:04:05Z"}`, 403, 403},
		{"an Event of the resource", "PATCH", fmt.Sprintf("workload-events/%d", free.event), fmt.Sprintf(`{"WorkloadResourceInstanceID":%d}`, owned.resource), 200, 403},
		{"an Event", "PATCH", fmt.Sprintf("workload-events/%d", owned.event), `{"Message":"again"}`, 200, 403},
		{"taking an Event over", "PATCH", fmt.Sprintf("workload-events/%d", owned.event), fmt.Sprintf(`{"WorkloadInstanceID":%d}`, free.instance), 200, 403},
		{"a row that is not there", "PATCH", "workload-events/7", `{"Message":"again"}`, 404, 404},
	} {
		if code, _ := ask(other, tc.method, tc.path, tc.body); code != tc.other {
			t.Errorf("%s by another cluster's agent: %d, want %d", tc.reason, code, tc.other)
		}
		if code, _ := ask(own, tc.method, tc.path, tc.body); code != tc.own {
			t.Errorf("%s by its own cluster's agent: %d, want %d", tc.reason, code, tc.own)
		}
	}
}

func eventOf(uid string, instance int64) string {
	return fmt.Sprintf(`{"RuntimeEventUID":%q,"Type":"Normal","Reason":"r","Message":"m","Timestamp":"2026-01-02T03:04:05Z","WorkloadInstanceID":%d}`, uid, instance)
}
