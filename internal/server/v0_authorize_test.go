package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// v0Rows are the IDs of the v0 rows of one workload.
type v0Rows struct{ instance, resource, event int64 }

// twoClusters has the tokens of the agents of two clusters and of an administrator.
type twoClusters struct {
	t                 *testing.T
	url               string
	client            *http.Client
	admin, own, other string
}

func newTwoClusters(t *testing.T, change ...func(*Config)) *twoClusters {
	t.Helper()
	url, client, token := secured(t, change...)
	return &twoClusters{t, url, client, token("admin", ""), token("agent", "c"), token("agent", "other")}
}

// request sends a request, and returns the code and the ID of the row in the answer.
func (n *twoClusters) request(bearer, method, path, body string) (int, int64) {
	n.t.Helper()
	got := send(n.t, n.client, method, n.url+"/v0/"+path, asJSON("Authorization", bearer), []byte(body))
	var envelope threeport.Response[struct{ ID int64 }]
	if err := json.Unmarshal([]byte(got.body), &envelope); err == nil && len(envelope.Data) == 1 {
		return got.code, envelope.Data[0].ID
	}
	return got.code, 0
}

// expectCode sends a request and checks the code of the answer.
func (n *twoClusters) expectCode(want int, bearer, method, path, body string) {
	n.t.Helper()
	if code, _ := n.request(bearer, method, path, body); code != want {
		n.t.Fatalf("%s %s: %d, want %d", method, path, code, want)
	}
}

func (n *twoClusters) createRows(name string) (e v0Rows) {
	n.t.Helper()
	_, e.instance = n.request(n.admin, http.MethodPost, "workload-instances", `{"Name":"`+name+`"}`)
	_, e.resource = n.request(n.admin, http.MethodPost, "workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, e.instance))
	var code int
	if code, e.event = n.request(n.admin, http.MethodPost, "workload-events", eventOf(name, e.instance)); code != http.StatusCreated {
		n.t.Fatalf("create the rows of %s: the answer is %d", name, code)
	}
	return e
}

// assign assigns a workload to a cluster: c is that of the own agent, other that of the other agent.
func (n *twoClusters) assign(e v0Rows, cluster string) {
	n.t.Helper()
	n.expectCode(http.StatusOK, n.admin, http.MethodPut, fmt.Sprintf("workloads/WorkloadInstance/%d/cluster", e.instance),
		fmt.Sprintf(`{"clusterUID":%q}`, cluster))
}

// statusSet is a report set of a cluster with the status of a workload.
func statusSet(cluster string, instance int64) string {
	return fmt.Sprintf(`{"agent":{"clusterUID":%q,"time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0},
		"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"1","status":{"status":"Healthy"}}]}`, cluster, instance)
}

// attempt is a request, with the codes for the agent of the workload's cluster and for another agent.
type attempt struct {
	reason, method, path, body string
	own, other                 int
}

// expect sends each attempt as the other agent, then as the own one.
func (n *twoClusters) expect(all []attempt) {
	n.t.Helper()
	for _, a := range all {
		if code, _ := n.request(n.other, a.method, a.path, a.body); code != a.other {
			n.t.Errorf("%s by another cluster's agent: %d, want %d", a.reason, code, a.other)
		}
		if code, _ := n.request(n.own, a.method, a.path, a.body); code != a.own {
			n.t.Errorf("%s by its own cluster's agent: %d, want %d", a.reason, code, a.own)
		}
	}
}

// Agents access only rows of their own cluster's workloads.
func TestV0_AgentAccess_OwnClusterOnly(t *testing.T) {
	n := newTwoClusters(t)
	owned, second, free := n.createRows("owned"), n.createRows("second"), n.createRows("free")
	n.assign(owned, "c")
	n.assign(second, "c")
	n.expect([]attempt{
		{
			reason: "a status", method: "PATCH", path: fmt.Sprintf("workload-instances/%d", owned.instance),
			body: `{"Status":"Down"}`, own: 200, other: 403,
		},
		{
			reason: "a name is not for agents", method: "PATCH", path: fmt.Sprintf("workload-instances/%d", owned.instance),
			body: `{"Name":"x"}`, own: 403, other: 403,
		},
		{
			reason: "a workload without a cluster", method: "PATCH", path: fmt.Sprintf("workload-instances/%d", free.instance),
			body: `{"Status":"Down"}`, own: 403, other: 403,
		},
		{
			reason: "reading a resource without a cluster", method: "GET", path: fmt.Sprintf("workload-resource-instances/%d", free.resource),
			own: 403, other: 403,
		},
		{
			reason: "an Event of a workload without a cluster", method: "POST", path: "workload-events", body: eventOf("early", free.instance),
			own: 403, other: 403,
		},
		{
			reason: "a resource", method: "PATCH", path: fmt.Sprintf("workload-resource-instances/%d", owned.resource),
			body: `{"LastOperation":"ADDED"}`, own: 200, other: 403,
		},
		{reason: "reading a resource", method: "GET", path: fmt.Sprintf("workload-resource-instances/%d", owned.resource), own: 200, other: 403},
		{
			reason: "reading a list", method: "GET",
			path: fmt.Sprintf("workload-events?workloadinstanceid=%d", owned.instance),
			own:  200, other: 403,
		},
		{
			reason: "the retention", method: "GET",
			path: fmt.Sprintf("workloads/WorkloadInstance/%d/event-retention", owned.instance),
			own:  200, other: 403,
		},
		{
			reason: "the retention of a workload without a cluster", method: "GET",
			path: fmt.Sprintf("workloads/WorkloadInstance/%d/event-retention", free.instance),
			own:  403, other: 403,
		},
		{reason: "a new Event", method: "POST", path: "workload-events", body: eventOf("new", owned.instance), own: 201, other: 403},
		{
			reason: "an Event without a workload", method: "POST", path: "workload-events",
			body: `{"RuntimeEventUID":"n","Type":"Normal","Reason":"r","Message":"m","Timestamp":"2026-01-02T03:04:05Z"}`,
			own:  403, other: 403,
		},
		{
			reason: "an Event of the resource", method: "PATCH", path: fmt.Sprintf("workload-events/%d", second.event),
			body: fmt.Sprintf(`{"WorkloadResourceInstanceID":%d}`, owned.resource), own: 200,
			other: 403,
		},
		{
			reason: "an Event", method: "PATCH", path: fmt.Sprintf("workload-events/%d", owned.event),
			body: `{"Message":"again"}`, own: 200, other: 403,
		},
		{
			reason: "taking an Event over", method: "PATCH", path: fmt.Sprintf("workload-events/%d", owned.event),
			body: fmt.Sprintf(`{"WorkloadInstanceID":%d}`, second.instance), own: 200,
			other: 403,
		},
		{
			reason: "moving an Event to a workload without a cluster", method: "PATCH", path: fmt.Sprintf("workload-events/%d", owned.event),
			body: fmt.Sprintf(`{"WorkloadInstanceID":%d}`, free.instance), own: 403, other: 403,
		},
		{reason: "a row that is not there", method: "PATCH", path: "workload-events/7", body: `{"Message":"again"}`, own: 404, other: 404},
	})
}

// Rows outlive their instance and still belong to its cluster.
func TestV0_DeletedInstance_KeepsItsCluster(t *testing.T) {
	n := newTwoClusters(t)
	owned, free := n.createRows("owned"), n.createRows("free")
	n.assign(owned, "c")
	_, ofResource := n.request(n.admin, "POST", "workload-events", `{"RuntimeEventUID":"r","Type":"Normal","Reason":"r","Message":"m",
		"Timestamp":"2026-01-02T03:04:05Z","WorkloadResourceInstanceID":`+fmt.Sprint(owned.resource)+`}`)
	_, ofNothing := n.request(n.admin, "POST", "workload-events", `{"RuntimeEventUID":"n","Type":"Normal","Reason":"r","Message":"m","Timestamp":"2026-01-02T03:04:05Z"}`)
	_, second := n.request(n.admin, "POST", "workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, owned.instance))
	n.expectCode(http.StatusOK, n.admin, "DELETE", fmt.Sprintf("workload-resource-instances/%d", owned.resource), "")
	for _, e := range []v0Rows{owned, free} {
		n.expectCode(http.StatusOK, n.admin, "DELETE", fmt.Sprintf("workload-instances/%d", e.instance), "")
	}
	n.expect([]attempt{
		{reason: "reading a resource", method: "GET", path: fmt.Sprintf("workload-resource-instances/%d", second), own: 200, other: 403},
		{
			reason: "a resource", method: "PATCH", path: fmt.Sprintf("workload-resource-instances/%d", second),
			body: `{"LastOperation":"DELETED"}`, own: 200, other: 403,
		},
		{reason: "reading an Event", method: "GET", path: fmt.Sprintf("workload-events/%d", owned.event), own: 200, other: 403},
		{
			reason: "an Event", method: "PATCH", path: fmt.Sprintf("workload-events/%d", owned.event),
			body: `{"Message":"again"}`, own: 200, other: 403,
		},
		{reason: "an Event of a deleted resource", method: "GET", path: fmt.Sprintf("workload-events/%d", ofResource), own: 200, other: 403},
		{reason: "a row that no cluster owns", method: "GET", path: fmt.Sprintf("workload-events/%d", free.event), own: 404, other: 404},
		{
			reason: "writing a row that no cluster owns", method: "PATCH", path: fmt.Sprintf("workload-resource-instances/%d", free.resource),
			body: `{"LastOperation":"DELETED"}`, own: 404, other: 404,
		},
		{reason: "an Event without a workload", method: "GET", path: fmt.Sprintf("workload-events/%d", ofNothing), own: 403, other: 403},
	})
}

// A POST of an existing UID answers with the row of the same instance, or creates one.
func TestV0_ExistingEvent_OfOtherCluster_IsNotAnswered(t *testing.T) {
	n := newTwoClusters(t)
	owned, second, foreign := n.createRows("owned"), n.createRows("second"), n.createRows("foreign")
	n.assign(owned, "c")
	n.assign(second, "c")
	n.assign(foreign, "other")
	for _, of := range []struct {
		bearer         string
		instance, code int64
		row            int64 // 0 for a new one
	}{
		{n.other, foreign.instance, http.StatusCreated, 0},
		{n.own, owned.instance, http.StatusOK, owned.event},
		{n.own, second.instance, http.StatusCreated, 0},
	} {
		code, id := n.request(of.bearer, http.MethodPost, "workload-events", eventOf("owned", of.instance))
		if int64(code) != of.code || of.row != 0 && id != of.row || of.row == 0 && id == owned.event {
			t.Errorf("a POST for instance %d: %d, row %d, want %d, row %d", of.instance, code, id, of.code, of.row)
		}
	}
}

func eventOf(uid string, instance int64) string {
	return fmt.Sprintf(`{"RuntimeEventUID":%q,"Type":"Normal","Reason":"r","Message":"m","Timestamp":"2026-01-02T03:04:05Z","WorkloadInstanceID":%d}`, uid, instance)
}
