package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestObject_RecordedObjectsWithOddValues_ValidVerdict puts odd values into all fields of recorded objects.
func TestObject_RecordedObjectsWithOddValues_ValidVerdict(t *testing.T) {
	next := 0
	for _, name := range []string{"sidecar-failing", "statefulset", "daemonset", "job-backoff-limit-retrying", "cronjob-done"} {
		r := readRecording(t, "testdata/recorded/"+name+".yaml")
		for _, o := range r.Objects {
			ctx := r.ctx(o)
			for _, root := range []string{"spec", "status"} {
				part, ok := o.Object[root].(map[string]any)
				if !ok {
					continue
				}
				delete(part, "template") // as large as everything else, and no rule reads it
				replaceEach(part, []string{root}, func(path []string, put func(any)) {
					for range 4 { // another four of them each time
						value := oddValues[next%len(oddValues)]
						next++
						put(value)
						where := fmt.Sprintf("%s: %s %s with %s = %T %v", name, o.GetKind(), o.GetName(), strings.Join(path, "."), value, value)
						checkVerdict(t, where, Object(kindOf(o), o, ctx))
					}
				})
			}
		}
	}
}

// checkVerdict checks the properties of every verdict.
func checkVerdict(t *testing.T, where string, got Assessment) {
	t.Helper()
	switch {
	case !slices.Contains(statusOrder, got.Status):
		t.Errorf("%s: the status of %+v is unknown", where, got)
	case (got.Message == "") != (got.Status == Healthy && !got.idle()):
		t.Errorf("%s: the status is %s with the message %q, want a message exactly if not Healthy or idle", where, got.Status, got.Message)
	case got.Status != Healthy && (got.Reason == "" || strings.ContainsAny(got.Reason, " \n\t") || len(got.Reason) > 200):
		t.Errorf("%s: the reason is %q, want one short word", where, got.Reason)
	case len(got.Message) > 2000 || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\r"):
		t.Errorf("%s: the message is %q, want one short line", where, got.Message)
	case strings.HasSuffix(got.Message, "."):
		t.Errorf("%s: the message ends with a full stop: %q", where, got.Message)
	}
}

// TestObject_OddValueInReadField_IsNotHealthy puts odd values into the fields of a Healthy object that its rule reads.
func TestObject_OddValueInReadField_IsNotHealthy(t *testing.T) {
	tests := []struct {
		object string
		paths  []string
	}{
		{
			`{apiVersion: v1, kind: ReplicationController, metadata: {name: a, generation: 1}, spec: {replicas: 2, minReadySeconds: 1},
  status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2}}`,
			[]string{"spec.replicas", "spec.minReadySeconds", "status.observedGeneration", "status.replicas", "status.availableReplicas"},
		},
		{
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 2, minReadySeconds: 1},
  status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2}}`,
			[]string{"spec.replicas", "spec.minReadySeconds", "status.replicas", "status.availableReplicas", "status.updatedReplicas"},
		},
		{
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 2, paused: false},
  status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2}}`,
			[]string{"spec.replicas", "status.replicas", "status.availableReplicas", "status.updatedReplicas"},
		},
		{
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "0 * * * *", suspend: false},
  status: {active: [], lastScheduleTime: "2026-01-01T09:00:00Z", lastSuccessfulTime: "2026-01-01T09:00:07Z"}}`,
			[]string{"spec.schedule", "status.lastSuccessfulTime"},
		},
		{
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`,
			[]string{"status", "status.phase", "status.conditions"},
		},
	}
	for _, tt := range tests {
		u := parse(t, tt.object)
		if got := Object(kindOf(u), u, Context{Now: caseTime}); got.Status != Healthy {
			t.Fatalf("the unchanged %s: got %+v, want Healthy", u.GetKind(), got)
		}
		tried := map[string]bool{}
		replaceEach(u.Object, nil, func(path []string, put func(any)) {
			at := strings.Join(path, ".")
			if !slices.Contains(tt.paths, at) {
				return
			}
			tried[at] = true
			for _, value := range oddValues {
				put(value)
				if got := Object(kindOf(u), u, Context{Now: caseTime}); got.Status == Healthy {
					t.Errorf("%s is Healthy with %s = %T %v", u.GetKind(), at, value, value)
				}
			}
		})
		if len(tried) != len(tt.paths) {
			t.Errorf("%s: of the fields %v, the object has only %v", u.GetKind(), tt.paths, tried)
		}
	}
}
