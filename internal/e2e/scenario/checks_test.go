package scenario

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

const crashed3 = `
apiVersion: v1
kind: Pod
metadata: {name: web, uid: a, deletionTimestamp: "2026-01-01T10:00:00Z"}
status:
  phase: Running
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]
  initContainerStatuses: [{name: init, state: {waiting: {reason: PodInitializing}}}]
  containerStatuses:
  - name: web
    restartCount: 2
    state: {terminated: {reason: Error, exitCode: 3}}
    lastState: {terminated: {reason: OOMKilled, exitCode: 137}}
---
{apiVersion: v1, kind: Event, metadata: {name: web.1}, involvedObject: {kind: Pod}, reason: BackOff, message: "Back-off restarting", count: 1}
---
{apiVersion: v1, kind: Event, metadata: {name: web.2}, involvedObject: {kind: Pod}, reason: Started, message: "Container started", count: 3}
---
{apiVersion: v1, kind: Event, metadata: {name: web.3}, involvedObject: {kind: Pod}, reason: Scheduled, message: "Successfully assigned"}
`

func TestChecks_NameMissing(t *testing.T) {
	s, err := recording.Parse([]byte(crashed3))
	if err != nil {
		t.Fatal(err)
	}
	s.Taken = time.Date(2026, 1, 1, 10, 0, 1, 0, time.UTC)
	tests := []struct {
		reason string
		check  Check
		want   string // in the error; empty for none
	}{
		{reason: "a container that crashed", check: pods(1, container("web", crashed("Error", 3)))},
		{
			reason: "with another exit code",
			check:  pods(1, container("web", crashed("Error", 1))),
			want:   "want Error, exit code 1",
		},
		{reason: "with another reason", check: pods(1, container("web", crashed("OOMKilled", 3))), want: "want OOMKilled"},
		{reason: "the last termination", check: pods(1, container("web", lastTerminated("OOMKilled", 137)))},
		{
			reason: "a container that does not wait",
			check:  pods(1, container("web", waiting("CrashLoopBackOff", ""))),
			want:   "the container is terminated Error after 2 restarts, want waiting CrashLoopBackOff",
		},
		{reason: "a container that does not run", check: pods(1, container("web", running)), want: "want running"},
		{
			reason: "a container with fewer restarts",
			check:  pods(1, container("web", restarts(3))),
			want:   "restarted the container 2 times, want 3",
		},
		{reason: "an init container", check: pods(1, container("init", waiting("PodInitializing", "")))},
		{reason: "a container that is not there", check: pods(1, container("db", running)), want: "no status of container db"},
		{reason: "another number of pods", check: pods(2), want: "the snapshot has 1 v1.Pod, want 2"},
		{reason: "one of them is not ready", check: some(1, ready(corev1.ConditionFalse))},
		{reason: "none is ready", check: some(1, ready(corev1.ConditionTrue)), want: "0 pods pass the checks, want 1"},
		{
			reason: "the reason of a condition",
			check:  pods(1, podCondition(corev1.PodReady, corev1.ConditionFalse, "Other")),
			want:   "not Ready=False Other",
		},
		{reason: "the phase", check: pods(1, inPhase(corev1.PodPending)), want: "is Running, want Pending"},
		{reason: "a pod with a deletion timestamp", check: pods(1, deleting(false)), want: "being deleted: true, want false"},
		{reason: "an overdue pod", check: overdue},
		{reason: "no Deployment", check: available(0), want: "the snapshot has 0 v1.Deployment"},
		{reason: "no node", check: nodeReady(corev1.ConditionTrue), want: "the snapshot has 0 v1.Node"},
		{reason: "an Event that happened", check: happened(podKind, "BackOff", "Back-off")},
		{reason: "one without a count", check: happened(podKind, "Scheduled", "")},
		{
			reason: "one that happened once",
			check:  repeated(podKind, "BackOff", ""),
			want:   "happened 1 times, want more than once",
		},
		{reason: "one that happened more often", check: repeated(podKind, "Started", "")},
		{reason: "how often", check: exactly(2, "Started"), want: "happened 3 times, want 2 times"},
		{reason: "an Event about another kind", check: happened("Job", "BackOff", ""), want: "the snapshot has no Event"},
		{reason: "another message", check: happened(podKind, "BackOff", "pulling"), want: "the snapshot has no Event"},
		{reason: "the first of several that fails", check: all(pods(1), pods(3), pods(2)), want: "want 3"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			err := tt.check(s)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	s.Taken = s.Taken.Add(-time.Minute)
	if err := overdue(s); err == nil {
		t.Error("a pod is overdue before the end of its grace period")
	}
}
