package health

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// A container that crashes again and again waits and runs in turn.
func TestPod_CrashLoop_KeepsItsStart(t *testing.T) {
	const unready = `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T09:40:00Z"}], ` +
		`containerStatuses: [{name: web, restartCount: 5, state: %s, lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: "2026-01-01T09:58:00Z"}}}]}}`
	start, recovery := caseTime.Add(-20*time.Minute), caseTime.Add(-time.Minute).Add(crashRecovery)
	for _, tt := range []struct {
		reason  string
		state   string
		want    string
		recheck time.Time
	}{
		{"it waits", "{waiting: {reason: CrashLoopBackOff}}", "CrashLoopBackOff", time.Time{}},
		{"it runs", `{running: {startedAt: "2026-01-01T09:59:00Z"}}`, "Restarting", recovery},
	} {
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, unready, tt.state), &pod); err != nil {
			t.Fatal(err)
		}
		got := Pod(&pod, Context{Now: caseTime})
		if got.Reason != tt.want || !got.Since.Equal(start) || !got.Recheck.Equal(tt.recheck) {
			t.Errorf("%s: the verdict is %s since %s, recheck %s; want %s since %s, recheck %s", tt.reason, got.Reason, got.Since, got.Recheck, tt.want, start, tt.recheck)
		}
	}
}

func TestPod(t *testing.T) {
	tests := []struct {
		reason  string
		pod     string
		want    Status
		why     string
		message string // "" for any
	}{
		{reason: "the status is empty", pod: `{}`, want: Reconciling, why: "Starting"},
		{
			reason: "it is ready",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`,
			want:   Healthy,
		},
		{
			reason: "it ran to its end",
			pod:    `{status: {phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}], containerStatuses: [{name: web, state: {terminated: {exitCode: 0}}}]}}`,
			want:   Healthy, why: Completed,
		},
		{reason: "it failed", pod: `{status: {phase: Failed}}`, want: Down, why: "PodFailed"},
		{
			reason: "it was evicted",
			pod:    `{status: {phase: Failed, reason: Evicted, message: the node was low on memory}}`,
			want:   Down, why: "Evicted", message: "the pod was evicted: the node was low on memory",
		},
		{
			reason: "it is being deleted",
			pod:    `{metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`,
			want:   Reconciling, why: "Terminating",
		},
		{
			reason: "its node does not report",
			pod:    `{status: {phase: Unknown, conditions: [{type: Ready, status: "True"}]}}`,
			want:   Unknown, why: "PodUnknown",
		},
		{
			reason: "the condition Ready is True, but the phase is Pending",
			pod:    `{status: {phase: Pending, conditions: [{type: Ready, status: "True"}]}}`,
			want:   Reconciling, why: "Starting",
		},

		{
			reason: "no node fits",
			pod:    `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]}}`,
			want:   Down, why: "Unschedulable", message: "the pod cannot be scheduled: 0/3 nodes are available",
		},
		{
			reason: "no node fits, and no pod can be preempted",
			pod: `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: ` +
				`1 Insufficient cpu, 2 node(s) had untolerated taint {zone: }. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."}]}}`,
			want: Down, why: "Unschedulable",
			message: "the pod cannot be scheduled: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {zone: }",
		},
		{
			reason: "no node fits, and no device can be released",
			pod: `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient cpu. ` +
				`no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."}]}}`,
			want: Down, why: "Unschedulable", message: "the pod cannot be scheduled: 0/2 nodes are available: 2 Insufficient cpu",
		},
		{
			reason: "a claim is not bound, and no plugin helps",
			pod: `{metadata: {name: pvc-0}, spec: {volumes: [{name: conf, configMap: {name: conf}}, {name: data, persistentVolumeClaim: {claimName: data-pvc-0}}]}, ` +
				`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"}]}}`,
			want: Down, why: "Unschedulable", message: "the pod cannot be scheduled: PersistentVolumeClaim data-pvc-0 is not bound",
		},
		{
			reason: "one of several claims is not bound, and no pod can be preempted",
			pod: `{metadata: {name: db-0}, spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data-db-0}}, {name: tmp, ephemeral: {}}]}, ` +
				`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."}]}}`,
			want: Down, why: "Unschedulable", message: "the pod cannot be scheduled: not all of PersistentVolumeClaims data-db-0, db-0-tmp are bound",
		},
		{
			reason: "the claim of one of many equal pods is not bound",
			pod: `{metadata: {name: web-78-abcde, generateName: web-78-}, spec: {volumes: [{name: tmp, ephemeral: {}}]}, ` +
				`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."}]}}`,
			want: Down, why: "Unschedulable", message: "the pod cannot be scheduled: PersistentVolumeClaim POD-tmp is not bound",
		},
		{
			reason: "a claim is not bound, and no volume is known",
			pod: `{` +
				`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"}]}}`,
			want: Down, why: "Unschedulable", message: "the pod cannot be scheduled: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims",
		},
		{
			reason: "a claim does not exist",
			pod: `{spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}, ` +
				`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: persistentvolumeclaim \"data\" not found. not found"}]}}`,
			want: Down, why: "Unschedulable", message: "the pod cannot be scheduled: 0/3 nodes are available: persistentvolumeclaim \"data\" not found",
		},
		{
			reason: "a scheduling gate holds the pod back",
			pod:    `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}}`,
			want:   Reconciling, why: "SchedulingGated",
		},
		{
			reason: "the kubelet begins with it",
			pod:    `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`,
			want:   Reconciling, why: "Starting",
		},
		{
			reason: "its init containers run",
			pod:    `{status: {phase: Pending, initContainerStatuses: [{name: init, state: {running: {}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`,
			want:   Reconciling, why: "Starting",
		},

		{
			reason: "a container crashes repeatedly",
			pod:    `{status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			want:   Down, why: "CrashLoopBackOff", message: "container web crashes: OOMKilled (exit code 137)",
		},
		{
			reason: "a crash loop without a last state",
			pod:    `{status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
			want:   Down, why: "CrashLoopBackOff", message: "container web crashes repeatedly",
		},
		{
			reason: "an image cannot be pulled",
			pod:    `{status: {phase: Pending, containerStatuses: [{name: web, image: x/y, state: {waiting: {reason: ErrImagePull}}}]}}`,
			want:   Down, why: "ImagePullBackOff", message: "image x/y cannot be pulled",
		},
		{
			reason: "the pull of the image backs off",
			pod:    `{status: {phase: Pending, containerStatuses: [{name: web, image: x/y, state: {waiting: {reason: ImagePullBackOff}}}]}}`,
			want:   Down, why: "ImagePullBackOff", message: "image x/y cannot be pulled",
		},
		{
			reason: "a container cannot be configured",
			pod:    `{status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: CreateContainerConfigError}}}]}}`,
			want:   Down, why: "CreateContainerConfigError",
		},
		{
			reason: "an init container fails",
			pod:    `{status: {phase: Pending, initContainerStatuses: [{name: init, state: {terminated: {exitCode: 1}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`,
			want:   Down, why: "Error", message: "init container init ended: Error (exit code 1)",
		},
		{
			reason: "an init container has ended well",
			pod:    `{status: {phase: Pending, initContainerStatuses: [{name: init, state: {terminated: {exitCode: 0}}}]}}`,
			want:   Reconciling, why: "Starting",
		},
		{
			reason: "one of two containers ended badly, whatever the conditions say yet",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, ready: true, state: {running: {}}}, {name: b, state: {terminated: {exitCode: 2, reason: Error}}}]}}`,
			want:   Down, why: "Error",
		},

		{
			reason: "a container has not been ready since it started",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T10:00:00Z"}], containerStatuses: [{name: web, state: {running: {startedAt: "2026-01-01T10:00:05Z"}}}]}}`,
			want:   Reconciling, why: "Starting",
		},
		{
			reason: "a container is no longer ready",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T11:00:00Z"}], containerStatuses: [{name: web, state: {running: {startedAt: "2026-01-01T10:00:05Z"}}}]}}`,
			want:   Unhealthy, why: "NotReady", message: "container web runs and is not ready",
		},
		{
			reason: "a container that was restarted is not ready",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T10:00:00Z"}], containerStatuses: [{name: web, restartCount: 1, state: {running: {startedAt: "2026-01-01T10:00:05Z"}}}]}}`,
			want:   Unhealthy, why: "NotReady",
		},
		{
			reason: "a container runs and is not ready",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}], containerStatuses: [{name: web, state: {running: {}}}]}}`,
			want:   Unhealthy, why: "NotReady", message: "container web runs and is not ready",
		},
		{
			reason: "a container has not passed its startup probe yet",
			pod:    `{status: {phase: Running, containerStatuses: [{name: web, started: false, state: {running: {}}}]}}`,
			want:   Reconciling, why: "Starting",
		},
		{
			reason: "the order of the conditions does not matter",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "False"}]}}`,
			want:   Down, why: "Unschedulable",
		},

		{
			reason: "its node is lost",
			pod:    `{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: NodeNotReady}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`,
			want:   Unhealthy, why: "NodeNotReady",
		},
		{
			reason: "the containers are ready, but the pod has no condition Ready",
			pod:    `{status: {phase: Running, containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`,
			want:   Reconciling, why: "Starting",
		},
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
			if (got.Message == "") != (got.Status == Healthy && !got.idle()) {
				t.Errorf("the status is %s with the message %q, want a message exactly if not Healthy or idle", got.Status, got.Message)
			}
		})
	}
}
