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
		{
			report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Instance.Type = secret },
			want: "instance.type: must be one of WorkloadInstance, HelmWorkloadInstance",
		},
		{report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Instance.ID = 0 }, want: "instance.id: "},
		{report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Version = -1 }, want: "version: "},
		{report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Event = nil }, want: "report: must have exactly one of"},
		{
			report:  eventOf(of, "e", 1),
			corrupt: func(r *threeport.Report) { r.Tree = &threeport.TreeReport{} },
			want:    "report: must have exactly one of",
		},
		{
			report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Event.UID = "" },
			want: "event.uid: must be a text of 1 to 256 characters",
		},
		{
			report:  eventOf(of, "e", 1),
			corrupt: func(r *threeport.Report) { r.Event.Message = strings.Repeat("é", maxMessage+1) },
			want:    "event.message: must be a text of at most 65536 characters",
		},
		{
			report:  eventOf(of, "e", 1),
			corrupt: func(r *threeport.Report) { r.Event.Message = secret + "\x00" },
			want:    "event.message: must be UTF-8 without NUL",
		},
		{
			report:  eventOf(of, "e", 1),
			corrupt: func(r *threeport.Report) { r.Event.Reason = secret + "\xff" },
			want:    "event.reason: must be UTF-8 without NUL",
		},
		{
			report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Event.Time = time.Time{} },
			want: "event.time: must be a time in the years 1970 to 9999",
		},
		{
			report:  eventOf(of, "e", 1),
			corrupt: func(r *threeport.Report) { r.Event.FirstTime = new(time.Unix(1<<50, 0)) },
			want:    "event.firstTime: ",
		},
		{report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Event.Count = -1 }, want: "event.count: "},
		{report: eventOf(of, "e", 1), corrupt: func(r *threeport.Report) { r.Event.Gap = &threeport.Gap{} }, want: "event.gap.first: "},
		{
			report:  eventOf(of, "e", 1),
			corrupt: func(r *threeport.Report) { r.Event.Involved.Name = strings.Repeat("n", maxName+1) },
			want:    "event.involved.name: ",
		},
		{
			report: statusOf(of, "Down", 1), corrupt: func(r *threeport.Report) { r.Status.Status = secret },
			want: "status.status: must be one of Down, Error, Unhealthy, Unknown, Reconciling, Healthy",
		},
		{report: statusOf(of, "Down", 1), corrupt: func(r *threeport.Report) { r.Status.Since = new(time.Unix(-1, 0)) }, want: "status.since: "},
		{
			report: operationOf(of, 1, "u", "ADDED", 1), corrupt: func(r *threeport.Report) { r.Operation.Object.UID = "" },
			want: "operation.object.uid: ",
		},
		{
			report: operationOf(of, 1, "u", "ADDED", 1), corrupt: func(r *threeport.Report) { r.Operation.Operation = secret },
			want: "operation.operation: must be one of ADDED, MODIFIED, DELETED",
		},
		{
			report: operationOf(of, 1, "u", "ADDED", 1), corrupt: func(r *threeport.Report) { r.Operation.Definition = nil },
			want: "operation.definition: ",
		},
		{
			report:  operationOf(of, 1, "u", "ADDED", 1),
			corrupt: func(r *threeport.Report) { r.Operation.Definition = json.RawMessage("null") },
			want:    "operation.definition: ",
		},
		{
			report:  operationOf(of, 1, "u", "ADDED", 1),
			corrupt: func(r *threeport.Report) { r.Operation.Definition = json.RawMessage(`["` + secret + `"]`) },
			want:    "operation.definition: must be a JSON object",
		},
		{report: operationOf(of, 1, "u", "ADDED", 1), corrupt: func(r *threeport.Report) {
			r.Operation.Definition = json.RawMessage(`{"a":"` + secret + `\u0000"}`)
		}, want: "operation.definition: must be a JSON object"},
		{report: operationOf(of, 1, "u", "ADDED", 1), corrupt: func(r *threeport.Report) {
			r.Operation.Definition = json.RawMessage(`{"a":"` + strings.Repeat(secret, maxDefinition/len(secret)+1) + `"}`)
		}, want: "operation.definition: must be a JSON object of at most 4194304 bytes"},
		{
			report:  operationOf(of, 1, "u", "DELETED", 1),
			corrupt: func(r *threeport.Report) { r.Operation.Definition = json.RawMessage("{}") },
			want:    "operation.definition: must be omitted",
		},
		{
			report:  treeOf(of, 1, nodeOf("a", "a", "Down"), nodeOf("b", "b", "Down")),
			corrupt: func(r *threeport.Report) { r.Tree.Objects[1].Health = secret },
			want:    "tree.objects[1].health: ",
		},
		{
			report:  treeOf(of, 1, nodeOf("a", "a", "Down")),
			corrupt: func(r *threeport.Report) { r.Tree.Objects[0].Object.Kind = "\x00" },
			want:    "tree.objects[0].object.kind: ",
		},
		{
			report: treeOf(of, 1, podNode("a", 1)), corrupt: func(r *threeport.Report) { r.Tree.Objects[0].Pod.Node = "\x00" },
			want: "tree.objects[0].pod.node: must be UTF-8 without NUL",
		},
		{
			report: treeOf(of, 1, podNode("a", 1)),
			corrupt: func(r *threeport.Report) {
				r.Tree.Objects[0].Pod.Containers = make([]threeport.ContainerFacts, threeport.MaxContainers+1)
			},
			want: "tree.objects[0].pod.containers: must be a list of at most 64",
		},
		{
			report: treeOf(of, 1, podNode("a", 1)), corrupt: func(r *threeport.Report) { r.Tree.Objects[0].Pod.Containers[1].State = secret },
			want: "tree.objects[0].pod.containers[1].state: must be one of Waiting, Running, Terminated",
		},
		{
			report: treeOf(of, 1, podNode("a", 1)), corrupt: func(r *threeport.Report) { r.Tree.Objects[0].Pod.Containers[1].Type = secret },
			want: "tree.objects[0].pod.containers[1].type: ",
		},
		{
			report: treeOf(of, 1, podNode("a", 1)),
			corrupt: func(r *threeport.Report) {
				r.Tree.Objects[0].Pod.Containers[1].Image = strings.Repeat("é", maxImage+1)
			},
			want: "tree.objects[0].pod.containers[1].image: must be a text of at most 1024 characters",
		},
		{
			report: treeOf(of, 1, podNode("a", 1)), corrupt: func(r *threeport.Report) { r.Tree.Objects[0].Pod.Containers[1].Restarts = -1 },
			want: "tree.objects[0].pod.containers[1].restarts: ",
		},
		{
			report:  treeOf(of, 1, podNode("a", 1)),
			corrupt: func(r *threeport.Report) { r.Tree.Objects[0].Pod.Containers[1].LastExit.Time = &time.Time{} },
			want:    "tree.objects[0].pod.containers[1].lastExit.time: ",
		},
		{
			report:  treeOf(of, 1),
			corrupt: func(r *threeport.Report) { r.Tree.Objects = make([]threeport.TreeObject, maxObjects+1) },
			want:    "tree.objects: must be a list of at most 20000",
		},
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
