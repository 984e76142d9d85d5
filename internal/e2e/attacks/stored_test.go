package attacks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// An agent sends a report set of a few KB that changes many large rows.
func TestMemory_SmallSetChangesLargeRows(t *testing.T) {
	const trees, objects, definitions = 12, threeport.MaxTreeObjects, 24
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		s, err := store.Open(t.Context(), store.Config{Address: address})
		a.must(err)
		version, long := time.Now().UnixMicro(), strings.Repeat("x", 600)
		var empty, edits []threeport.Report
		for range trees {
			id := a.workload(s, ownCluster).instance
			a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO objects (type, id, key, clusteruid, uid, apigroup, apiversion, kind, namespace, name, owner, listed,
					resourceinstanceid, state, health, reason, cause, pod, since)
				SELECT 'WorkloadInstance', %d, 'uid-' || i, '%s', 'uid-' || i, '', 'v1', 'Pod', 'n', 'p', '', FALSE, 0, '', 'Healthy', '', '%s', '', 1 FROM n`,
				objects, id, ownCluster, long))
			empty = append(empty, threeport.Report{
				Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(id)},
				Version:  threeport.ID(version), Tree: &threeport.TreeReport{Objects: []threeport.TreeObject{}},
			})
		}
		a.must(s.Close())
		a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO definitions (clusteruid, uid, type, id, apigroup, apiversion, kind, namespace, name, resourceinstanceid, operation, version,
				deleted, current, at)
			SELECT '%s', 'uid-' || i, 'WorkloadInstance', %d, '', 'v1', 'ConfigMap', 'n', 'c', 0, 'ADDED', 1, FALSE, '{"data":{"a":"%s"}}', 1 FROM n`,
			definitions, ownCluster, a.own.instance, strings.Repeat("x", 4<<20)))
		for i := range definitions {
			edits = append(edits, threeport.Report{
				Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(a.own.instance)}, Version: 2,
				Operation: &threeport.OperationReport{
					Object:    threeport.ObjectRef{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c", UID: fmt.Sprint("uid-", i+1)},
					Operation: threeport.OperationModified, Definition: json.RawMessage(`{"data":{}}`),
				},
			})
		}
		a.start()
		for what, reports := range map[string][]threeport.Report{"trees without objects": empty, "operations on large definitions": edits} {
			began := time.Now()
			a.sendCompressed(t.Context(), a.agent, threeport.ReportSet{Agent: threeport.Agent{ClusterUID: ownCluster, Time: began}, Reports: reports})
			t.Logf("a set of %d %s took %s", len(reports), what, time.Since(began).Round(time.Millisecond))
		}
		a.expectAlive()
	})
}

// An answer that quotes its body takes as much memory, until the client reads it.
func TestMemory_AnswerQuotesBody(t *testing.T) {
	databases.OnSQLite(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		a.start()
		code, size, err := a.request(t.Context(), a.agent, http.MethodPost, "/v0/workload-report-sets", text("", "9", "", 4<<20))
		if err != nil || code != http.StatusBadRequest || size > 1000 {
			t.Errorf("the answer to a large number is %d with %d bytes (%v), want %d with at most 1000", code, size, err, http.StatusBadRequest)
		}
		a.expectAlive()
	})
}
