package health

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestPod(t *testing.T) {
	tests := []struct {
		reason  string
		pod     string
		want    Status
		why     string
		message string // "" for any
	}{
		{"nothing is known of it yet", `{}`, Reconciling, "Starting", ""},
		{"it is ready", `{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`, Healthy, "", ""},
		{"it ran to its end", `{status: {phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}], containerStatuses: [{name: web, state: {terminated: {exitCode: 0}}}]}}`, Healthy, Completed, ""},
		{"it failed", `{status: {phase: Failed}}`, Down, "PodFailed", ""},
		{"it was evicted", `{status: {phase: Failed, reason: Evicted, message: the node was low on memory}}`, Down, "Evicted", "the pod was evicted: the node was low on memory"},
		{"it is being deleted", `{metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, Reconciling, "Terminating", ""},
		{"its node does not report", `{status: {phase: Unknown, conditions: [{type: Ready, status: "True"}]}}`, Unknown, "PodUnknown", ""},
		{"it says that it is ready and not that it runs", `{status: {phase: Pending, conditions: [{type: Ready, status: "True"}]}}`, Reconciling, "Starting", ""},

		{
			"no node fits",
			`{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]}}`,
			Down, "Unschedulable", "the pod cannot be scheduled: 0/3 nodes are available",
		},
		{"it is held back on purpose", `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}}`, Reconciling, "SchedulingGated", ""},
		{"the kubelet begins with it", `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`, Reconciling, "Starting", ""},
		{"its init containers run", `{status: {phase: Pending, initContainerStatuses: [{name: init, state: {running: {}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`, Reconciling, "Starting", ""},

		{
			"a container crashes again and again",
			`{status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			Down, "CrashLoopBackOff", "container web crashes: OOMKilled (exit code 137)",
		},
		{"and nothing is left to say why", `{status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, Down, "CrashLoopBackOff", "container web crashes again and again"},
		{"an image cannot be pulled", `{status: {phase: Pending, containerStatuses: [{name: web, image: x/y, state: {waiting: {reason: ErrImagePull}}}]}}`, Down, "ImagePullBackOff", "image x/y cannot be pulled"},
		{"and is tried again", `{status: {phase: Pending, containerStatuses: [{name: web, image: x/y, state: {waiting: {reason: ImagePullBackOff}}}]}}`, Down, "ImagePullBackOff", "image x/y cannot be pulled"},
		{"a container cannot be configured", `{status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: CreateContainerConfigError}}}]}}`, Down, "CreateContainerConfigError", ""},
		{"an init container fails", `{status: {phase: Pending, initContainerStatuses: [{name: init, state: {terminated: {exitCode: 1}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`, Down, "Error", "init container init ended: Error (exit code 1)"},
		{"an init container has ended well", `{status: {phase: Pending, initContainerStatuses: [{name: init, state: {terminated: {exitCode: 0}}}]}}`, Reconciling, "Starting", ""},
		{"one of two containers ended badly, whatever the conditions say yet", `{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, ready: true, state: {running: {}}}, {name: b, state: {terminated: {exitCode: 2, reason: Error}}}]}}`, Down, "Error", ""},

		{"a container has not been ready since it started", `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T10:00:00Z"}], containerStatuses: [{name: web, state: {running: {startedAt: "2026-01-01T10:00:05Z"}}}]}}`, Reconciling, "Starting", ""},
		{"a container is no longer ready", `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T11:00:00Z"}], containerStatuses: [{name: web, state: {running: {startedAt: "2026-01-01T10:00:05Z"}}}]}}`, Unhealthy, "NotReady", "container web runs and is not ready"},
		{"a container that was restarted is not ready", `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T10:00:00Z"}], containerStatuses: [{name: web, restartCount: 1, state: {running: {startedAt: "2026-01-01T10:00:05Z"}}}]}}`, Unhealthy, "NotReady", ""},
		{"a container runs and is not ready", `{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}], containerStatuses: [{name: web, state: {running: {}}}]}}`, Unhealthy, "NotReady", "container web runs and is not ready"},
		{"a container has not passed its startup probe yet", `{status: {phase: Running, containerStatuses: [{name: web, started: false, state: {running: {}}}]}}`, Reconciling, "Starting", ""},
		{"the order of the conditions does not matter", `{status: {phase: Running, conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "False"}]}}`, Down, "Unschedulable", ""},

		{"its node is lost", `{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: NodeNotReady}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`, Unhealthy, "NodeNotReady", ""},
		{"its containers are ready, and nothing says that the pod is", `{status: {phase: Running, containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`, Reconciling, "Starting", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict([]byte(tt.pod), &pod); err != nil {
				t.Fatal(err)
			}
			got := Pod(&pod, Context{})
			if got.Status != tt.want || got.Reason != tt.why || tt.message != "" && got.Message != tt.message {
				t.Errorf("got %+v, want %s %s %q", got, tt.want, tt.why, tt.message)
			}
			if (got.Message == "") != (got.Status == Healthy) {
				t.Errorf("the status is %s with the message %q, want a message exactly if not Healthy", got.Status, got.Message)
			}
		})
	}
}
