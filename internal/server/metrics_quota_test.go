package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// operationSet is a set of one cluster with a definition of a size in bytes.
func operationSet(cluster, uid string, instance int64, size int) []byte {
	return fmt.Appendf(nil, `{"agent":{"clusterUID":%q,"time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,"deadLetters":0,"dropped":0},
		"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"1","operation":{"operation":"ADDED","definition":{"a":%q},
		"object":{"version":"v1","kind":"ConfigMap","namespace":"default","name":%q,"uid":%q}}}]}`,
		cluster, instance, strings.Repeat("a", size), uid, uid)
}

func TestMetrics_ClusterQuota_HasBytesLimitAndRejectedReports(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		config := plain()
		config.Database, config.Limits.ClusterBytes = address, 65_536
		n := &twoClusters{t: t, url: run(t, config), client: http.DefaultClient}
		metrics := func() string {
			return send(t, n.client, http.MethodGet, n.url+"/metrics", http.Header{}, nil).body
		}
		expect := func(lines ...string) {
			t.Helper()
			got := metrics()
			for _, line := range lines {
				if !strings.Contains(got, "\n"+line+"\n") {
					t.Errorf("the metrics have no line %s", line)
				}
			}
		}
		report := func(cluster, uid string, instance int64, size int, outcome string) {
			t.Helper()
			got := send(t, n.client, http.MethodPost, n.url+"/v0/workload-report-sets", asJSON(), operationSet(cluster, uid, instance, size))
			if got.code != http.StatusOK || !strings.Contains(got.body, outcome) {
				t.Fatalf("the answer for %s is %d %s, want %s", uid, got.code, got.body, outcome)
			}
		}
		expect("controlplane_cluster_stored_bytes_limit 65536", "controlplane_quota_rejected_reports_total 0")
		_, first := n.request("", http.MethodPost, "workload-instances", `{"Name":"first"}`)
		_, second := n.request("", http.MethodPost, "workload-instances", `{"Name":"second"}`)
		report("one", "a", first, 1000, `"created"`)
		report("one", "b", first, 70_000, "--max-cluster-bytes")
		report("one", "c", first, 70_000, "--max-cluster-bytes")
		report("two", "d", second, 3000, `"created"`)
		// The size of a definition is that of its texts, its object's names, and 256 bytes.
		bytesOf := func(size int) int {
			return 256 + size + len(`{"a":""}`) + len("a"+"v1"+"ConfigMap"+"default"+"a"+"ADDED")
		}
		expect(
			"controlplane_quota_rejected_reports_total 2",
			fmt.Sprintf(`controlplane_cluster_stored_bytes{cluster="one"} %d`, bytesOf(1000)),
			fmt.Sprintf(`controlplane_cluster_stored_bytes{cluster="two"} %d`, bytesOf(3000)),
		)
	})
}
