package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A rebuilt cluster has another UID. Without --require-assignment, its agent can report the workloads after an administrator has
// released the old cluster.
func TestClusters_Release_FreesWorkloads(t *testing.T) {
	n := newTwoClusters(t, func(c *Config) { c.RequireAssignment = false })
	e := n.createRows("web")
	n.expectCode(http.StatusOK, n.own, "POST", "workload-report-sets", statusSet("c", e.instance))
	status := fmt.Sprintf("workload-instances/%d", e.instance)
	n.expectCode(http.StatusForbidden, n.other, "PATCH", status, `{"Status":"Down"}`)
	for _, bearer := range []string{n.own, n.other} {
		n.expectCode(http.StatusForbidden, bearer, "DELETE", "clusters/c", "")
	}
	n.expectCode(http.StatusOK, n.admin, "DELETE", "clusters/c", "")
	n.expectCode(http.StatusNotFound, n.admin, "DELETE", "clusters/c", "")
	n.expectCode(http.StatusOK, n.other, "PATCH", status, `{"Status":"Down"}`)
	n.expectCode(http.StatusOK, n.other, "POST", "workload-report-sets", statusSet("other", e.instance))
	n.expectCode(http.StatusForbidden, n.own, "PATCH", status, `{"Status":"Down"}`)

	const record = `"method":"DELETE","path":"/v0/clusters/c","code":200`
	var got reply
	for !strings.Contains(got.body, record) { // records are written after the answer
		if got = send(t, n.client, "GET", n.url+"/v0/audit-records", asJSON("Authorization", n.admin), nil); got.code != http.StatusOK {
			t.Fatalf("audit records: the answer is %d %s, want %d", got.code, got.body, http.StatusOK)
		}
	}
}
