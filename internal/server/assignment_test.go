package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// assignable is a server with the tokens of an administrator and of the agents of two clusters.
type assignable struct {
	*tlsServer
	t                  *testing.T
	admin, own, other  string
	instance, resource string // IDs
}

// onAssignable runs a test on each database, with a workload that is registered and not assigned.
func onAssignable(t *testing.T, required bool, test func(a *assignable)) {
	t.Helper()
	onTLS(t, func(c *Config) { c.RequireAssignment = required }, func(t *testing.T, s *tlsServer) {
		t.Helper()
		a := &assignable{
			tlsServer: s, t: t, admin: s.token(t, "--role=admin", "--name=root"),
			own: s.token(t, "--role=agent", "--name=own", "--cluster=c"), other: s.token(t, "--role=agent", "--name=other", "--cluster=other"),
		}
		a.instance = a.create("workload-instances", `{"Name":"web"}`, "")
		a.resource = a.create("workload-resource-instances",
			`{"JSONDefinition":{"kind":"Desired"},"RuntimeDefinition":{"kind":"Running"},"WorkloadInstanceID":`+a.instance+`}`, "")
		test(a)
	})
}

// create creates a row as the administrator, and returns its ID. The cluster is that of the header; empty for none.
func (a *assignable) create(path, body, cluster string) string {
	a.t.Helper()
	header := asJSON("Authorization", "Bearer "+a.admin)
	if cluster != "" {
		header.Set(threeport.ClusterHeader, cluster)
	}
	got := send(a.t, a.client, "POST", a.url+"/v0/"+path, header, []byte(body))
	var envelope threeport.Response[struct{ ID int64 }]
	if err := json.Unmarshal([]byte(got.body), &envelope); err != nil || len(envelope.Data) != 1 {
		a.t.Fatalf("POST %s: %d %s", path, got.code, got.body)
	}
	return fmt.Sprint(envelope.Data[0].ID)
}

// expect sends a request and checks the code of the answer and a part of the body.
func (a *assignable) expect(code int, has, token, method, path, body string) reply {
	a.t.Helper()
	got := a.send(a.t, token, method, path, body)
	if got.code != code || !strings.Contains(got.body, has) {
		a.t.Errorf("%s %s %s: %d %s, want %d with %q", method, path, body, got.code, got.body, code, has)
	}
	return got
}

// report sends a report set of a cluster with the status of the workload, and checks a part of the answer.
func (a *assignable) report(token, cluster, has string) {
	a.t.Helper()
	var id int64
	_, _ = fmt.Sscan(a.instance, &id)
	a.expect(http.StatusOK, has, token, "POST", "/v0/workload-report-sets", statusSet(cluster, id))
}

func (a *assignable) clusterPath() string {
	return "/v0/workloads/WorkloadInstance/" + a.instance + "/cluster"
}

// By default the server refuses an agent all rows of a workload of another cluster or of none. The answer has the command that
// assigns the workload.
func TestAssignment_Required(t *testing.T) {
	onAssignable(t, true, func(a *assignable) {
		unassigned := "WorkloadInstance " + a.instance + " is not assigned to a cluster; an administrator assigns it: " +
			"controlplane workload assign --cluster other WorkloadInstance " + a.instance
		resource, status := "/v0/workload-resource-instances/"+a.resource, "/v0/workload-instances/"+a.instance
		expectRefused := func(hint string) {
			a.t.Helper()
			for _, try := range []struct{ method, path, body string }{
				{"GET", resource, ""},
				{"PATCH", resource, `{"LastOperation":"ADDED"}`},
				{"GET", status, ""},
				{"PATCH", status, `{"Status":"Down"}`},
				{"GET", "/v0/workload-events?workloadinstanceid=" + a.instance, ""},
				{"GET", "/v0/workloads/WorkloadInstance/" + a.instance + "/event-retention", ""},
			} {
				got := a.expect(http.StatusForbidden, hint, a.other, try.method, try.path, try.body)
				if got.header.Get(threeport.ProblemHeader) != threeport.ProblemForbidden {
					a.t.Errorf("%s %s: the headers are %v, want %s", try.method, try.path, got.header, threeport.ProblemHeader)
				}
			}
			a.report(a.other, "other", `"code":"forbidden","detail":"`+hint)
		}
		expectRefused(unassigned)
		a.expect(http.StatusOK, `"clusterUID":"c"}`, a.admin, "PUT", a.clusterPath(), `{"clusterUID":"c"}`)
		expectRefused("the instance belongs to another cluster; an administrator moves it: controlplane workload assign --cluster other TYPE ID")
		a.expect(http.StatusOK, `"Running"`, a.own, "GET", resource, "")
		a.report(a.own, "c", `"created"`)
		// The repair of a wrong assignment, twice.
		a.expect(http.StatusOK, `"clusterUID":"other","previousClusterUID":"c"}`, a.admin, "PUT", a.clusterPath(), `{"clusterUID":"other"}`)
		a.expect(http.StatusOK, `"clusterUID":"other","previousClusterUID":"other"}`, a.admin, "PUT", a.clusterPath(), `{"clusterUID":"other"}`)
		a.report(a.own, "c", `"forbidden"`)
		a.report(a.other, "other", `"created"`) // the same version, because versions of two clusters are not comparable
		a.expect(http.StatusOK, `"previousClusterUID":"other"}`, a.admin, "DELETE", a.clusterPath(), "")
		a.expect(http.StatusOK, `"instance":{"type":"WorkloadInstance","id":"`+a.instance+`"}}`, a.admin, "DELETE", a.clusterPath(), "")
		expectRefused(unassigned)

		want := []string{"PUT 200 c", "PUT 200 other", "PUT 200 other", "DELETE 200 other", "DELETE 200"}
		var got []string
		for _, line := range a.auditRecords(a.t) {
			if fields := strings.Fields(line); fields[0] == "token:root" && fields[2] == a.clusterPath() {
				got = append(got, strings.Join(append([]string{fields[1], fields[3]}, fields[6:]...), " "))
			}
		}
		if !slices.Equal(got, want) {
			a.t.Errorf("the audit log has the assignments %q, want %q", got, want)
		}
	})
}

func TestAssignment_Requests(t *testing.T) {
	onAssignable(t, true, func(a *assignable) {
		viewer := a.token(a.t, "--role=viewer", "--name=jane")
		for _, token := range []string{viewer, a.own} {
			a.expect(http.StatusForbidden, "", token, "PUT", a.clusterPath(), `{"clusterUID":"c"}`)
			a.expect(http.StatusForbidden, "", token, "DELETE", a.clusterPath(), "")
		}
		for _, body := range []string{`{}`, `{"clusterUID":""}`, `{"clusterUID":"a b"}`, `{"clusterUID":"` + strings.Repeat("x", 129) + `"}`, `{"cluster":"c"}`} {
			a.expect(http.StatusUnprocessableEntity, "", a.admin, "PUT", a.clusterPath(), body)
		}
		for _, path := range []string{"WorkloadInstance/7", "HelmWorkloadInstance/" + a.instance} {
			a.expect(http.StatusNotFound, "there is no workload of this type and ID", a.admin, "PUT", "/v0/workloads/"+path+"/cluster", `{"clusterUID":"c"}`)
		}
		// The request that registers an instance may assign it.
		for _, objects := range []string{"workload-instances", "helm-workload-instances"} {
			id := a.create(objects, `{"Name":"api"}`, "c")
			a.expect(http.StatusOK, "", a.own, "GET", "/v0/"+objects+"/"+id, "")
			a.expect(http.StatusForbidden, "belongs to another cluster", a.other, "GET", "/v0/"+objects+"/"+id, "")
		}
		got := send(a.t, a.client, "POST", a.url+"/v0/workload-instances", asJSON("Authorization", "Bearer "+a.admin, threeport.ClusterHeader, "a b"), []byte(`{"Name":"x"}`))
		if got.code != http.StatusBadRequest || !strings.Contains(got.body, threeport.ClusterHeader) {
			a.t.Errorf("a malformed header is answered %d %s, want 400 with its name", got.code, got.body)
		}
	})
}

// A refused write claims no workload: that belongs to the first agent whose report is accepted.
func TestAssignment_NotRequired_RefusedWriteClaimsNothing(t *testing.T) {
	onAssignable(t, false, func(a *assignable) {
		foreign := a.create("workload-instances", `{"Name":"foreign"}`, "other")
		foreignResource := a.create("workload-resource-instances", `{"JSONDefinition":{},"WorkloadInstanceID":`+foreign+`}`, "")
		event := func(uid, resource string) string {
			if resource != "" {
				resource = `,"WorkloadResourceInstanceID":` + resource
			}
			return `{"RuntimeEventUID":"` + uid + `","Type":"Normal","Reason":"r","Message":"m","Timestamp":"2026-01-02T03:04:05Z","WorkloadInstanceID":` +
				a.instance + resource + `}`
		}
		a.create("workload-events", event("first", ""), "")
		second := a.create("workload-events", event("second", ""), "")
		a.create("workload-events", event("mixed", foreignResource), "")
		for _, try := range []struct {
			reason             string
			code               int
			method, path, body string
		}{
			{
				reason: "an Event of a resource of another cluster", code: http.StatusForbidden,
				method: "POST", path: "/v0/workload-events", body: event("new", foreignResource),
			},
			{
				reason: "an Event of an unknown resource", code: http.StatusNotFound,
				method: "POST", path: "/v0/workload-events", body: event("new", "7"),
			},
			{
				reason: "an Event whose row has a resource of another cluster", code: http.StatusForbidden,
				method: "POST", path: "/v0/workload-events", body: event("mixed", ""),
			},
			{
				reason: "an Event with the UID of another one", code: http.StatusConflict,
				method: "PATCH", path: "/v0/workload-events/" + second, body: `{"RuntimeEventUID":"first"}`,
			},
			{
				reason: "a field that is not for agents", code: http.StatusForbidden,
				method: "PATCH", path: "/v0/workload-instances/" + a.instance, body: `{"Name":"x"}`,
			},
		} {
			a.expect(try.code, "", a.own, try.method, try.path, try.body)
			if got := a.expect(http.StatusOK, a.resource, a.own, "GET", "/v0/workload-resource-instances/"+a.resource, ""); strings.Contains(got.body, "Definition") {
				a.t.Errorf("%s: the agent owns the workload", try.reason)
			}
		}
		a.expect(http.StatusOK, "\ncontrolplane_claims_total 0\n", a.admin, "GET", "/metrics", "")
		a.report(a.other, "other", `"created"`)
	})
}

// With --require-assignment=false the first agent that reports a workload claims it. The claim is visible, and agents get no
// definition before it.
func TestAssignment_NotRequired_FirstReportClaims(t *testing.T) {
	for _, tc := range []struct {
		reason string
		claim  func(a *assignable)
	}{
		{"a report set", func(a *assignable) { a.report(a.own, "c", `"created"`) }},
		{"a report through v0", func(a *assignable) {
			a.expect(http.StatusOK, `"Running"`, a.own, "PATCH", "/v0/workload-resource-instances/"+a.resource, `{"LastOperation":"ADDED"}`)
		}},
		{"an Event through v0", func(a *assignable) {
			var id int64
			_, _ = fmt.Sscan(a.instance, &id)
			a.expect(http.StatusCreated, "", a.own, "POST", "/v0/workload-events", eventOf("e", id))
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			onAssignable(t, false, func(a *assignable) {
				resource := "/v0/workload-resource-instances/" + a.resource
				for _, token := range []string{a.own, a.other} {
					if got := a.expect(http.StatusOK, a.resource, token, "GET", resource, ""); strings.Contains(got.body, "Definition") {
						a.t.Errorf("before the claim an agent reads %s, want no definition", got.body)
					}
				}
				a.expect(http.StatusOK, "\ncontrolplane_claims_total 0\n", a.admin, "GET", "/metrics", "")
				tc.claim(a)
				a.expect(http.StatusOK, `"Running"`, a.own, "GET", resource, "")
				a.expect(http.StatusForbidden, "belongs to another cluster", a.other, "GET", resource, "")
				a.expect(http.StatusForbidden, "belongs to another cluster", a.other, "PATCH", resource, `{"LastOperation":"ADDED"}`)
				a.report(a.other, "other", `"forbidden"`)
				a.expect(http.StatusOK, "\ncontrolplane_claims_total 1\n", a.admin, "GET", "/metrics", "")
				if log := a.log.String(); strings.Count(log, `"An agent claimed a workload without a cluster","principal":"token:own","cluster":"c","type":"WorkloadInstance","id":`+a.instance) != 1 {
					a.t.Errorf("the log is %s, want the claim once", log)
				}
				want := "token:own PUT " + a.clusterPath() + " 200 WorkloadInstance " + a.instance + " c"
				if got := a.auditRecords(a.t); !slices.Contains(got, want) {
					a.t.Errorf("the audit log is\n%s\nwant %s", strings.Join(got, "\n"), want)
				}
			})
		})
	}
}
