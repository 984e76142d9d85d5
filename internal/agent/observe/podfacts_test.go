package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podFactsText is a container per line, as type name state reason, and its last exit.
func podFactsText(f *PodFacts) string {
	var lines []string
	for _, c := range f.Containers {
		line := fmt.Sprintf("%s/%s %s %s %s ready %t restarts %d", c.Type, c.Name, c.Image, c.State, c.Reason, c.Ready, c.Restarts)
		if exit := c.LastExit; exit.Known {
			line += fmt.Sprintf(" exit %d %s", exit.Code, exit.Reason)
			if !exit.At.IsZero() {
				line += exit.At.Format(" 15:04:05")
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestNewPodFacts_Containers(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 7, 0, time.UTC))
	terminated := func(code int32, reason string, at metav1.Time) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: at, Message: "hunter2"}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "hunter2"}}
	for _, tc := range []struct {
		reason string
		status corev1.PodStatus
		want   string
	}{
		{"the kubelet has reported nothing", corev1.PodStatus{}, ""},
		{
			"a container without a state waits",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app"}}},
			"/app  Waiting  ready false restarts 0",
		},
		{
			"a container that crashes again and again",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: "shop:1", State: waiting, LastTerminationState: terminated(137, "OOMKilled", at), RestartCount: 4,
			}}},
			"/app shop:1 Waiting CrashLoopBackOff ready false restarts 4 exit 137 OOMKilled 10:00:07",
		},
		{
			"the present termination is later than the last",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", State: terminated(0, "Completed", at), LastTerminationState: terminated(1, "Error", metav1.Time{}),
			}}},
			"/app  Terminated Completed ready false restarts 0 exit 0 Completed 10:00:07",
		},
		{
			"a container that never started has no time",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", State: terminated(128, "StartError", metav1.NewTime(time.Unix(0, 0))),
			}}},
			"/app  Terminated StartError ready false restarts 0 exit 128 StartError",
		},
		{
			"containers of all types",
			corev1.PodStatus{
				InitContainerStatuses:      []corev1.ContainerStatus{{Name: "setup", State: terminated(0, "Completed", at)}, {Name: "proxy", State: running, Ready: true}},
				ContainerStatuses:          []corev1.ContainerStatus{{Name: "app", State: running, Ready: true}},
				EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "shell", State: running}},
			},
			"init/setup  Terminated Completed ready false restarts 0 exit 0 Completed 10:00:07\n" +
				"sidecar/proxy  Running  ready true restarts 0\n" +
				"/app  Running  ready true restarts 0\n" +
				"ephemeral/shell  Running  ready false restarts 0",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{
				NodeName:       "node-1",
				InitContainers: []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
				Containers:     []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}}},
			}, Status: tc.status}
			facts := NewPodFacts(pod)
			if got := podFactsText(facts); got != tc.want {
				t.Errorf("the containers are\n%s\nwant\n%s", got, tc.want)
			}
			if facts.Node != "node-1" {
				t.Errorf("the node is %q, want node-1", facts.Node)
			}
			if text := fmt.Sprintf("%+v", *facts); strings.Contains(text, "hunter2") {
				t.Errorf("the facts have an environment variable or a message: %s", text)
			}
		})
	}
}

// The kubelet writes the status of a Pod again and again. Only some changes are facts.
func TestPodFacts_Equal(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *PodFacts {
		at := metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 7, 0, time.UTC))
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: at}},
		}}}}
		change(p)
		return NewPodFacts(p)
	}
	first := func(p *corev1.Pod) *corev1.ContainerStatus { return &p.Status.ContainerStatuses[0] }
	before := pod(func(*corev1.Pod) {})
	for _, tc := range []struct {
		reason string
		change func(*corev1.Pod)
		equal  bool
	}{
		{"nothing", func(*corev1.Pod) {}, true},
		{"the start of the container", func(p *corev1.Pod) { first(p).State.Running.StartedAt = metav1.Now() }, true},
		{"a heartbeat of a condition", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, LastProbeTime: metav1.Now()}}
		}, true},
		{"the resource version", func(p *corev1.Pod) { p.ResourceVersion = "2" }, true},
		{"the message of a termination", func(p *corev1.Pod) { first(p).LastTerminationState.Terminated.Message = "bye" }, true},
		{"a restart", func(p *corev1.Pod) { first(p).RestartCount++ }, false},
		{"another node", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, false},
		{"readiness", func(p *corev1.Pod) { first(p).Ready = true }, false},
		{"the exit code", func(p *corev1.Pod) { first(p).LastTerminationState.Terminated.ExitCode = 2 }, false},
	} {
		if got := pod(tc.change).Equal(before); got != tc.equal {
			t.Errorf("after a change of %s the facts are equal: %t, want %t", tc.reason, got, tc.equal)
		}
	}
	var none *PodFacts
	if none.Equal(before) || before.Equal(none) || !none.Equal(nil) {
		t.Error("no facts equal only no facts")
	}
}
