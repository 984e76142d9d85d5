package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A rebuilt cluster has another UID. Its agent can report the workloads after an administrator has released the old cluster.
func TestClusters_Release_FreesWorkloads(t *testing.T) {
	n := newTwoClusters(t)
	e := n.createRows("web")
	n.claim(e)
	status := fmt.Sprintf("workload-instances/%d", e.instance)
	n.expectCode(http.StatusForbidden, n.other, "PATCH", status, `{"Status":"Down"}`)
	for _, bearer := range []string{n.own, n.other} {
		n.expectCode(http.StatusForbidden, bearer, "DELETE", "clusters/c", "")
	}
	n.expectCode(http.StatusOK, n.admin, "DELETE", "clusters/c", "")
	n.expectCode(http.StatusNotFound, n.admin, "DELETE", "clusters/c", "")
	n.expectCode(http.StatusOK, n.other, "PATCH", status, `{"Status":"Down"}`)
	report := fmt.Sprintf(`{"agent":{"clusterUID":"other","time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0},
		"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"1","status":{"status":"Healthy"}}]}`, e.instance)
	n.expectCode(http.StatusOK, n.other, "POST", "workload-report-sets", report)
	n.expectCode(http.StatusForbidden, n.own, "PATCH", status, `{"Status":"Down"}`)

	const record = `"method":"DELETE","path":"/v0/clusters/c","code":200`
	var got reply
	for !strings.Contains(got.body, record) { // records are written after the answer
		if got = send(t, n.client, "GET", n.url+"/v0/audit-records", asJSON("Authorization", n.admin), nil); got.code != http.StatusOK {
			t.Fatalf("audit records: the answer is %d %s, want %d", got.code, got.body, http.StatusOK)
		}
	}
}
