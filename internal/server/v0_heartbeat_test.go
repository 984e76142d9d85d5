package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Writes that only agents make end the silence of their cluster.
func TestV0_Writes_AreHeartbeats(t *testing.T) {
	opened, url := startStore(t, onFile(t).Database)
	n := &twoClusters{t: t, url: url, client: http.DefaultClient}
	e := n.createRows("web")
	report := threeport.ReportSet{
		Agent: threeport.Agent{ClusterUID: "c", Time: time.Now()},
		Reports: []threeport.Report{{
			Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(e.instance)},
			Version:  1, Status: &threeport.StatusReport{Status: "Healthy"},
		}},
	}
	isSilent := func() bool {
		t.Helper()
		clusters, err := opened.Clusters(t.Context())
		if err != nil || len(clusters) != 1 {
			t.Fatal(clusters, err)
		}
		return clusters[0].Silent
	}
	fallSilent := func() {
		t.Helper()
		if _, err := opened.Apply(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		for !isSilent() { // the clock has to go on by a microsecond
			if _, err := opened.MarkSilent(t.Context(), time.Microsecond); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		reason, method, path, body string
		silent                     bool
	}{
		{"a name", "PATCH", fmt.Sprintf("workload-instances/%d", e.instance), `{"Name":"new"}`, true},
		{"a definition", "PATCH", fmt.Sprintf("workload-resource-instances/%d", e.resource), `{"JSONDefinition":{}}`, true},
		{"reading", "GET", fmt.Sprintf("workload-instances/%d", e.instance), "", true},
		{"a status", "PATCH", fmt.Sprintf("workload-instances/%d", e.instance), `{"Status":"Down"}`, false},
		{"an operation", "PATCH", fmt.Sprintf("workload-resource-instances/%d", e.resource), `{"LastOperation":"ADDED"}`, false},
		{"a runtime definition", "PATCH", fmt.Sprintf("workload-resource-instances/%d", e.resource), `{"RuntimeDefinition":{}}`, false},
		{"an Event", "POST", "workload-events", eventOf("new", e.instance), false},
		{"an Event again", "POST", "workload-events", eventOf("new", e.instance), false},
		{"a change of an Event", "PATCH", fmt.Sprintf("workload-events/%d", e.event), `{"Message":"again"}`, false},
	} {
		fallSilent()
		if code, _ := n.request("", tc.method, tc.path, tc.body); code != http.StatusOK && code != http.StatusCreated {
			t.Errorf("%s: the answer is %d", tc.reason, code)
		}
		if isSilent() != tc.silent {
			t.Errorf("%s: the cluster is silent: %t", tc.reason, !tc.silent)
		}
	}
}
