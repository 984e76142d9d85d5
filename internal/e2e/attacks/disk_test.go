package attacks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// apply sends a report set of the attacking agent and counts the outcomes.
func (a *api) apply(reports []threeport.Report) map[string]int {
	a.Helper()
	body, err := json.Marshal(threeport.ReportSet{Agent: threeport.Agent{ClusterUID: ownCluster, Time: time.Now()}, Reports: reports})
	a.must(err)
	req, err := http.NewRequestWithContext(a.Context(), http.MethodPost, a.url+"/v0/workload-report-sets", bytes.NewReader(body))
	a.must(err)
	req.Header.Set("Authorization", a.agent)
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	a.must(err)
	defer func() { _ = resp.Body.Close() }()
	var answer threeport.ReportSetAnswer
	a.must(json.NewDecoder(resp.Body).Decode(&answer))
	outcomes := map[string]int{}
	for _, item := range answer.Items {
		outcomes[item.Outcome]++
		if item.Problem != nil && !strings.Contains(item.Problem.Detail, "--max-cluster-bytes") {
			a.Errorf("a report is rejected with %q, want the name of the flag", item.Problem.Detail)
		}
	}
	return outcomes
}

// An agent reports definitions and trees of objects that do not exist.
func TestDisk_AgentReportsInventedObjects(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		a.start("--max-cluster-bytes=8MiB")
		of := threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(a.own.instance)}
		object := func(uid string) threeport.ObjectRef { return threeport.ObjectRef{Kind: "X", Name: "x", UID: uid} }

		const rounds, treeSize, definitionSize = 10, 5000, 1 << 20
		objects, definitions := 0, 0
		for round := range rounds {
			tree := &threeport.TreeReport{Objects: make([]threeport.TreeObject, treeSize)}
			for i := range tree.Objects {
				tree.Objects[i] = threeport.TreeObject{Object: object(fmt.Sprint(round, "-", i)), Health: "Down"}
			}
			reports := []threeport.Report{{Instance: of, Version: threeport.ID(round + 1), Tree: tree}}
			for i := range 3 {
				reports = append(reports, threeport.Report{Instance: of, Version: 1, Operation: &threeport.OperationReport{
					Object: object(fmt.Sprint("definition-", round, "-", i)), Operation: threeport.OperationAdded,
					Definition: json.RawMessage(`{"a":"` + strings.Repeat("a", definitionSize) + `"}`),
				}})
			}
			applied := a.apply(reports[:1])
			objects += treeSize * (applied["created"] + applied["updated"])
			definitions += a.apply(reports[1:])["created"]
		}
		t.Logf("%d objects and %d definitions are stored", objects, definitions)
		if size := objects*256 + definitions*definitionSize; size > 8<<20 || definitions == 0 || objects == 0 {
			t.Errorf("%d objects and %d definitions of 1 MiB are stored, want some in at most 8 MiB", objects, definitions)
		}
		a.expectAlive()
	})
}
