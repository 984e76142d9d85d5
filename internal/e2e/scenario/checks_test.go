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

func TestChecksSayWhatIsMissing(t *testing.T) {
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
		{"a container that crashed", pods(1, container("web", crashed("Error", 3))), ""},
		{"with another exit code", pods(1, container("web", crashed("Error", 1))), "want Error, exit code 1"},
		{"with another reason", pods(1, container("web", crashed("OOMKilled", 3))), "want OOMKilled"},
		{"how it ended before", pods(1, container("web", lastTerminated("OOMKilled", 137))), ""},
		{"it does not wait", pods(1, container("web", waiting("CrashLoopBackOff", ""))), "it is terminated Error after 2 restarts, want waiting CrashLoopBackOff"},
		{"it does not run", pods(1, container("web", running)), "want running"},
		{"it was restarted less often", pods(1, container("web", restarts(3))), "restarted 2 times, want 3"},
		{"an init container", pods(1, container("init", waiting("PodInitializing", ""))), ""},
		{"a container that is not there", pods(1, container("db", running)), "no status of container db"},
		{"there is one pod", pods(2), "there are 1 v1.Pod, want 2"},
		{"one of them is not ready", some(1, ready(corev1.ConditionFalse)), ""},
		{"none is ready", some(1, ready(corev1.ConditionTrue)), "0 pods are as they are to be, want 1"},
		{"the reason of a condition", pods(1, podCondition(corev1.PodReady, corev1.ConditionFalse, "Other")), "not Ready=False Other"},
		{"the phase", pods(1, inPhase(corev1.PodPending)), "is Running, want Pending"},
		{"it is being deleted", pods(1, deleting(false)), "being deleted: true, want false"},
		{"it is overdue", overdue, ""},
		{"no Deployment", available(0), "there are 0 v1.Deployment"},
		{"no node", nodeReady(corev1.ConditionTrue), "there are 0 v1.Node"},
		{"an Event that happened", happened(podKind, "BackOff", "Back-off"), ""},
		{"one without a count", happened(podKind, "Scheduled", ""), ""},
		{"one that happened once", repeated(podKind, "BackOff", ""), "happened 1 times, want more than once"},
		{"one that happened more often", repeated(podKind, "Started", ""), ""},
		{"how often", exactly(2, "Started"), "happened 3 times, want 2 times"},
		{"an Event about another kind", happened("Job", "BackOff", ""), "there is no event"},
		{"another message", happened(podKind, "BackOff", "pulling"), "there is no event"},
		{"the first of several that fails", all(pods(1), pods(3), pods(2)), "want 3"},
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
		t.Error("a pod is overdue before its time")
	}
}
