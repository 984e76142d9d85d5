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
		{reason: "a name", method: "PATCH", path: fmt.Sprintf("workload-instances/%d", e.instance), body: `{"Name":"new"}`, silent: true},
		{
			reason: "a definition", method: "PATCH", path: fmt.Sprintf("workload-resource-instances/%d", e.resource),
			body: `{"JSONDefinition":{}}`, silent: true,
		},
		{reason: "reading", method: "GET", path: fmt.Sprintf("workload-instances/%d", e.instance), silent: true},
		{reason: "a status", method: "PATCH", path: fmt.Sprintf("workload-instances/%d", e.instance), body: `{"Status":"Down"}`},
		{
			reason: "an operation", method: "PATCH", path: fmt.Sprintf("workload-resource-instances/%d", e.resource),
			body: `{"LastOperation":"ADDED"}`,
		},
		{
			reason: "a runtime definition", method: "PATCH", path: fmt.Sprintf("workload-resource-instances/%d", e.resource),
			body: `{"RuntimeDefinition":{}}`,
		},
		{reason: "an Event", method: "POST", path: "workload-events", body: eventOf("new", e.instance)},
		{reason: "an Event again", method: "POST", path: "workload-events", body: eventOf("new", e.instance)},
		{reason: "a change of an Event", method: "PATCH", path: fmt.Sprintf("workload-events/%d", e.event), body: `{"Message":"again"}`},
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
