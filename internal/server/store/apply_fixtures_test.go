package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportTime is the time of all reports.
var reportTime = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// setOf is a report set of a cluster.
func setOf(cluster string, reports ...threeport.Report) threeport.ReportSet {
	return threeport.ReportSet{
		Agent:   threeport.Agent{ClusterUID: cluster, ClusterName: "name of " + cluster, Version: "v1", Time: reportTime},
		Reports: reports,
	}
}

// apply applies reports of a cluster and returns the outcomes.
func apply(tb testing.TB, s *Store, cluster string, reports ...threeport.Report) []string {
	tb.Helper()
	answer, err := s.Apply(tb.Context(), setOf(cluster, reports...))
	if err != nil {
		tb.Fatal(err)
	}
	return outcomes(answer)
}

// outcomes has one word per answer: the outcome (with the version if it is stale) or the problem.
func outcomes(answer threeport.ReportSetAnswer) []string {
	all := make([]string, len(answer.Items))
	for i, item := range answer.Items {
		all[i] = item.Outcome
		switch {
		case item.Problem != nil:
			all[i] = item.Problem.Code
		case item.Version != 0:
			all[i] += fmt.Sprint(" ", item.Version)
		}
	}
	return all
}

// details are the details of the problems.
func details(answer threeport.ReportSetAnswer) []string {
	var all []string
	for _, item := range answer.Items {
		if item.Problem != nil {
			all = append(all, item.Problem.Detail)
		}
	}
	return all
}

// world has a workload with one resource, and a Helm workload.
type world struct {
	workload, helm threeport.Instance
	resource       int64
}

func newWorld(t *testing.T, s *Store) world {
	t.Helper()
	w := create(t, s, workload, "web")
	h := create(t, s, helm, "chart")
	r := create(t, s, "WorkloadResourceInstance", "{}", w.ID)
	return world{
		workload: threeport.Instance{Type: workload, ID: threeport.ID(w.ID)},
		helm:     threeport.Instance{Type: helm, ID: threeport.ID(h.ID)},
		resource: r.ID,
	}
}

func operationOf(of threeport.Instance, resource int64, uid, operation string, version int64) threeport.Report {
	o := &threeport.OperationReport{
		ResourceInstanceID: threeport.ID(resource),
		Object:             threeport.ObjectRef{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: uid},
		Operation:          operation,
	}
	if operation != threeport.OperationDeleted {
		o.Definition = json.RawMessage(fmt.Sprintf(`{"version": %d, "uid": %q}`, version, uid))
	}
	return threeport.Report{Instance: of, Version: threeport.ID(version), Operation: o}
}

func eventOf(of threeport.Instance, uid string, version int64) threeport.Report {
	return threeport.Report{Instance: of, Version: threeport.ID(version), Event: &threeport.EventReport{
		UID: uid, Involved: threeport.ObjectRef{Version: "v1", Kind: "Pod", Namespace: "default", Name: "web-1", UID: "pod-1"},
		Type: "Normal", Reason: "Created", Message: fmt.Sprint("message ", version), Time: reportTime.Add(time.Duration(version) * time.Second),
		Count: version,
	}}
}

func statusOf(of threeport.Instance, status string, version int64) threeport.Report {
	return threeport.Report{Instance: of, Version: threeport.ID(version), Status: &threeport.StatusReport{
		Status: status, Reason: "Reason", Cause: fmt.Sprint("cause ", version),
	}}
}

func treeOf(of threeport.Instance, version int64, objects ...threeport.TreeObject) threeport.Report {
	return threeport.Report{Instance: of, Version: threeport.ID(version), Tree: &threeport.TreeReport{Objects: objects}}
}

func nodeOf(name, uid, health string) threeport.TreeObject {
	return threeport.TreeObject{
		Object: threeport.ObjectRef{Version: "v1", Kind: "Pod", Namespace: "default", Name: name, UID: uid}, Health: health,
	}
}

// workloadRowOf is the workloads row of an instance, without times.
func workloadRowOf(t *testing.T, s *Store, of threeport.Instance) string {
	t.Helper()
	var said, status, reason, cause string
	var rank, version int64
	var silent bool
	readRow(t, s, "SELECT said, saidversion, status, rank, silent, reason, cause FROM workloads WHERE type = ? AND id = ?",
		[]any{of.Type, int64(of.ID)}, &said, &version, &status, &rank, &silent, &reason, &cause)
	return fmt.Sprintf("reported %s %d, shown %s %d, silent %t, %s: %s", said, version, status, rank, silent, reason, cause)
}

// count returns the result of a query for a number.
func count(tb testing.TB, s *Store, query string, args ...any) int64 {
	tb.Helper()
	n, err := first(tb.Context(), s.read, query, args, number)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}
