package store

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const secret = "s3cret"

// TestValidateReport makes one field of a valid report invalid at a time.
func TestValidateReport(t *testing.T) {
	of := threeport.Instance{Type: workload, ID: 1}
	for _, test := range []struct {
		report  threeport.Report
		corrupt func(r *threeport.Report)
		want    string // prefix of the error
	}{
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Instance.Type = secret }, "instance.type: must be one of WorkloadInstance, HelmWorkloadInstance"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Instance.ID = 0 }, "instance.id: "},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Version = -1 }, "version: "},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event = nil }, "report: must have exactly one of"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Tree = &threeport.TreeReport{} }, "report: must have exactly one of"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.UID = "" }, "event.uid: must be a text of 1 to 256 characters"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Message = strings.Repeat("é", maxMessage+1) }, "event.message: must be a text of at most 65536 characters"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Message = secret + "\x00" }, "event.message: must be UTF-8 without NUL"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Reason = secret + "\xff" }, "event.reason: must be UTF-8 without NUL"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Time = time.Time{} }, "event.time: must be a time in the years 1970 to 9999"},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.FirstTime = new(time.Unix(1<<50, 0)) }, "event.firstTime: "},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Count = -1 }, "event.count: "},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Gap = &threeport.Gap{} }, "event.gap.first: "},
		{eventOf(of, "e", 1), func(r *threeport.Report) { r.Event.Involved.Name = strings.Repeat("n", maxName+1) }, "event.involved.name: "},
		{statusOf(of, "Down", 1), func(r *threeport.Report) { r.Status.Status = secret }, "status.status: must be one of Down, Error, Unhealthy, Unknown, Reconciling, Healthy"},
		{statusOf(of, "Down", 1), func(r *threeport.Report) { r.Status.Since = new(time.Unix(-1, 0)) }, "status.since: "},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) { r.Operation.Object.UID = "" }, "operation.object.uid: "},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) { r.Operation.Operation = secret }, "operation.operation: must be one of ADDED, MODIFIED, DELETED"},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) { r.Operation.Definition = nil }, "operation.definition: "},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) { r.Operation.Definition = json.RawMessage("null") }, "operation.definition: "},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) { r.Operation.Definition = json.RawMessage(`["` + secret + `"]`) }, "operation.definition: must be a JSON object"},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) {
			r.Operation.Definition = json.RawMessage(`{"a":"` + secret + `\u0000"}`)
		}, "operation.definition: must be a JSON object"},
		{operationOf(of, 1, "u", "ADDED", 1), func(r *threeport.Report) {
			r.Operation.Definition = json.RawMessage(`{"a":"` + strings.Repeat(secret, maxDefinition/len(secret)+1) + `"}`)
		}, "operation.definition: must be a JSON object of at most 4194304 bytes"},
		{operationOf(of, 1, "u", "DELETED", 1), func(r *threeport.Report) { r.Operation.Definition = json.RawMessage("{}") }, "operation.definition: must be omitted"},
		{treeOf(of, 1, nodeOf("a", "a", "Down"), nodeOf("b", "b", "Down")), func(r *threeport.Report) { r.Tree.Objects[1].Health = secret }, "tree.objects[1].health: "},
		{treeOf(of, 1, nodeOf("a", "a", "Down")), func(r *threeport.Report) { r.Tree.Objects[0].Object.Kind = "\x00" }, "tree.objects[0].object.kind: "},
		{treeOf(of, 1), func(r *threeport.Report) { r.Tree.Objects = make([]threeport.TreeObject, maxObjects+1) }, "tree.objects: must be a list of at most 20000"},
	} {
		t.Run(test.want, func(t *testing.T) {
			if err := (&item{Report: &test.report}).validate(); err != nil {
				t.Fatalf("the valid report returned %v", err)
			}
			test.corrupt(&test.report)
			switch err := (&item{Report: &test.report}).validate(); {
			case err == nil:
				t.Error("the invalid report returned no error")
			case !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), secret):
				t.Errorf("the error is %v, want one about %s without the secret", err, test.want)
			}
		})
	}
}

func TestValidateSet_Delay(t *testing.T) {
	for _, delay := range []float64{-1, math.NaN(), math.Inf(1)} {
		set := setOf("one")
		set.Agent.DelaySeconds = delay
		if err := validateSet(set); err == nil {
			t.Errorf("the delay %v returned no error", delay)
		}
	}
}
