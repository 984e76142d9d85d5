package recording

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bornAt is a pod of a ReplicaSet "web", in a phase, as it was made in a second of a run.
func bornAt(v *variant, name, phase string, second int) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web-%s, generateName: web-, namespace: %s, uid: %s, creationTimestamp: %s}, status: {phase: %s}}`,
		name, v.namespace, v.uid(name), v.time(second).Format(`"2006-01-02T15:04:05Z"`), phase)
}

func TestNames_SiblingsByAgeThenStatus(t *testing.T) {
	tests := []struct {
		reason string
		pods   func(v *variant) []string
		want   []string // the names, in the order of their numbers
	}{
		{
			reason: "of different age",
			pods: func(v *variant) []string {
				return []string{bornAt(v, "zzzzz", "Failed", 0), bornAt(v, "bbbbb", "Failed", 30), bornAt(v, "ccccc", "Running", 60)}
			},
			want: []string{"zzzzz", "bbbbb", "ccccc"},
		},
		{
			reason: "made together, one fails",
			pods: func(v *variant) []string {
				return []string{bornAt(v, "bbbbb", "Running", 1), bornAt(v, "zzzzz", "Failed", 3), bornAt(v, "ccccc", "Running", 0)}
			},
			want: []string{"zzzzz", "", ""},
		},
		{
			reason: "two of each age",
			pods: func(v *variant) []string {
				return []string{bornAt(v, "bbbbb", "Running", 20), bornAt(v, "zzzzz", "Pending", 21), bornAt(v, "ccccc", "Running", 1), bornAt(v, "ddddd", "Failed", 2)}
			},
			want: []string{"ddddd", "ccccc", "zzzzz", "bbbbb"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			v := newVariant(1)
			s := v.snapshot(t, strings.Join(tt.pods(v), "\n---\n"))
			d := draft{objects: s.Objects}
			words := d.dictionary(newClock(d.times()))
			for i, name := range tt.want {
				want := fmt.Sprintf("web-%05d", i+1)
				if name != "" && words.tokens["web-"+name] != want {
					t.Errorf("web-%s becomes %s, want %s", name, words.tokens["web-"+name], want)
				}
			}
		})
	}
}

const cron = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick, namespace: {{namespace}}, uid: {{uid "tick"}}, creationTimestamp: {{time 0}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{minute 1}}
  namespace: {{namespace}}
  uid: {{uid "first"}}
  creationTimestamp: {{time 60}}
  annotations: {batch.kubernetes.io/cronjob-scheduled-timestamp: {{time 60}}}
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: tick, uid: {{uid "tick"}}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: {{name (print (minute 1) "-") "pod"}}
  generateName: {{minute 1}}-
  namespace: {{namespace}}
  uid: {{uid "pod"}}
  creationTimestamp: {{time 61}}
  labels: {job-name: {{minute 1}}, controller-uid: {{uid "first"}}}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: {{minute 1}}, uid: {{uid "first"}}}]
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{minute 2}}
  namespace: {{namespace}}
  uid: {{uid "second"}}
  creationTimestamp: {{time 120}}
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: tick, uid: {{uid "tick"}}}]
---
{{event "cronjob-controller" "CronJob" "tick" "tick" 60 1}}
reason: SuccessfulCreate
message: Created job {{minute 1}}
`

func TestNames_JobsOfCronJob(t *testing.T) {
	for seed := range uint64(20) {
		s, err := Parse([]byte(textOf(t, newVariant(seed).snapshot(t, cron))))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, obj := range s.Objects {
			names = append(names, obj.GetName())
		}
		names = append(names, s.Objects[3].GetLabels()["job-name"], s.Objects[3].GetLabels()["controller-uid"], s.Objects[3].GetGenerateName())
		message, _, _ := unstructured.NestedString(s.Events[0].Object, "message")
		got := strings.Join(append(names, message), "|")
		want := "tick|tick-29454361|tick-29454362|tick-29454361-00001|tick-29454361|uid-job-tick-29454361|tick-29454361-|Created job tick-29454361"
		if got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

const again = `
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: {{namespace}}, uid: {{uid "now"}}, creationTimestamp: {{time 40}}}
---
{{event "kubelet" "Pod" "db-0" "before" 1 1}}
reason: Killing
message: Stopping container db
---
{{event "kubelet" "Pod" "db-0" "now" 41 1}}
reason: Started
message: Container started
`

func TestNames_LaterIncarnationHasNumber(t *testing.T) {
	s, err := Parse([]byte(textOf(t, newVariant(1).snapshot(t, again))))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Objects[0].GetUID(); got != "uid-pod-db-0-again-1" {
		t.Errorf("the pod's UID is %s", got)
	}
	var about []string
	for _, e := range s.Events {
		uid, _, _ := unstructured.NestedString(e.Object, "involvedObject", "uid")
		about = append(about, uid)
	}
	if got := strings.Join(about, " "); got != "uid-pod-db-0-again-1 uid-pod-db-0" {
		t.Errorf("the Events are about %s", got)
	}
}
