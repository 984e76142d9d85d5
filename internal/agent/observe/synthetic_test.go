package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// podWith returns a pod with a status of the container app, in YAML.
func podWith(t *testing.T, status string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "ns", UID: "u", CreationTimestamp: metav1.NewTime(created)}}
	if err := yaml.UnmarshalStrict([]byte(status), &pod.Status); err != nil {
		t.Fatalf("%v in %s", err, status)
	}
	return pod
}

var created = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// endTexts names terminations: "app 2 OOMKilled 10:00:40".
func endTexts(ends []ContainerTermination) string {
	var out []string
	for _, e := range ends {
		out = append(out, fmt.Sprintf("%s %d %s %s", e.Container, e.Restart, e.Terminated.Reason, e.Time.Format("15:04:05")))
	}
	return strings.Join(out, ", ")
}

func TestContainerTerminations(t *testing.T) {
	const failed = `terminated: {exitCode: 1, reason: Error, finishedAt: "2026-01-01T10:00:40Z", containerID: one}`
	const killed = `terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-01-01T10:00:50Z", containerID: two}`
	const running = `running: {startedAt: "2026-01-01T10:01:00Z"}`
	for _, c := range []struct{ reason, status, want string }{
		{"nothing has ended", `{containerStatuses: [{name: app, state: {` + running + `}}]}`, ""},
		{"no containers", `{}`, ""},
		{"it runs again", `{containerStatuses: [{name: app, restartCount: 1, containerID: two, state: {` + running + `}, lastState: {` + failed + `}}]}`, "app 1 Error 10:00:40"},
		{"it ran to its end, and runs again", `{containerStatuses: [{name: app, restartCount: 1, state: {` + running + `},
			lastState: {terminated: {exitCode: 0, reason: Completed, finishedAt: "2026-01-01T10:00:40Z"}}}]}`, "app 1 Completed 10:00:40"},
		{
			"the back-off after its first restart: the end in lastState is of the run that was the first restart",
			`{containerStatuses: [{name: app, restartCount: 1, containerID: one, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {` + failed + `}}]}`, "app 2 Error 10:00:40",
		},
		{"the same without a container ID", `{containerStatuses: [{name: app, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {` + failed + `}}]}`, "app 2 Error 10:00:40"},

		{"a container that was created for the restart, and has not started", `{containerStatuses: [{name: app, restartCount: 2, containerID: two, state: {waiting: {}}, lastState: {` + failed + `}}]}`, "app 2 Error 10:00:40"},
		{"the same without a container ID", `{containerStatuses: [{name: app, restartCount: 2, state: {waiting: {reason: ContainerCreating}}, lastState: {` + failed + `}}]}`, "app 2 Error 10:00:40"},

		{"it failed, and is not restarted yet", `{containerStatuses: [{name: app, restartCount: 0, state: {` + failed + `}}]}`, ""},
		{"it was killed for its memory, and is not restarted yet", `{containerStatuses: [{name: app, restartCount: 0, state: {` + killed + `}}]}`, "app 1 OOMKilled 10:00:50"},
		{"it ended twice: both are reported", `{containerStatuses: [{name: app, restartCount: 1, containerID: two, state: {` + killed + `}, lastState: {` + failed + `}}]}`, "app 1 Error 10:00:40, app 2 OOMKilled 10:00:50"},

		{"a lost restart count: no report", `{containerStatuses: [{name: app, restartCount: 0, state: {` + running + `}, lastState: {` + failed + `}}]}`, ""},
		{"init containers, sidecars and ephemeral ones", `{
			initContainerStatuses: [{name: init, restartCount: 3, state: {` + failed + `}, lastState: {` + failed + `}}],
			containerStatuses: [{name: app, restartCount: 0, state: {` + running + `}}],
			ephemeralContainerStatuses: [{name: debug, state: {` + killed + `}}]}`, "init 3 Error 10:00:40, debug 1 OOMKilled 10:00:50"},
		{"a kubelet that lost it does not know when it ended", `{containerStatuses: [{name: app, restartCount: 1, state: {` + running + `},
			lastState: {terminated: {exitCode: 137, reason: ContainerStatusUnknown, startedAt: null, finishedAt: null}}}]}`, "app 1 ContainerStatusUnknown 10:01:00"},
		{"without a time of the container, the pod's start counts", `{startTime: "2026-01-01T09:30:00Z", containerStatuses: [{name: app, restartCount: 1, state: {waiting: {}},
			lastState: {terminated: {exitCode: 137, reason: ContainerStatusUnknown, finishedAt: "1970-01-01T00:00:00Z"}}}]}`, "app 1 ContainerStatusUnknown 09:30:00"},
		{"without a start, the pod's creation counts", `{containerStatuses: [{name: app, restartCount: 1, state: {waiting: {}}, lastState: {terminated: {exitCode: 137, reason: Error, finishedAt: null}}}]}`, "app 1 Error 09:00:00"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := endTexts(ContainerTerminations(podWith(t, c.status))); got != c.want {
				t.Errorf("ends are %q, want %q", got, c.want)
			}
		})
	}
}

// The pods are of a real kubelet. The numbers were checked against restartCount by hand.
func TestContainerTerminations_OfRecordedPods(t *testing.T) {
	for name, want := range map[string]string{
		"bad-command":                "web 3 StartError",
		"crash-at-once":              "web 2 Error",
		"crash-at-once-backing-off":  "web 6 Error",
		"crash-later-backing-off":    "web 2 Error",
		"healthy":                    "",
		"init-failing":               "init 2 Error",
		"job-backoff-limit-retrying": "",
		"job-failed":                 "",
		"liveness":                   "web 4 Completed",
		"oom-at-once":                "web 2 OOMKilled, web 3 OOMKilled",
		"oom-recovers-backing-off":   "web 2 OOMKilled, web 3 OOMKilled",
		"oom-recovers-running":       "web 2 OOMKilled",
		"sidecar-failing":            "sidecar 2 Error",
		"terminating-in-grace":       "",
	} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "health", "testdata", "recorded", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for doc := range strings.SplitSeq(string(raw), "\n---\n") {
			pod := &corev1.Pod{}
			if err := yaml.Unmarshal([]byte(doc), pod); err != nil || pod.Kind != "Pod" {
				continue
			}
			for _, e := range ContainerTerminations(pod) {
				got = append(got, fmt.Sprintf("%s %d %s", e.Container, e.Restart, e.Terminated.Reason))
			}
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: ends are %q, want %q", name, text, want)
		}
	}
}

func TestNewTermination(t *testing.T) {
	pod := target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: "web-1"}, UID: "u"}
	attribution := target.Attribution{Instance: target.Instance{Type: target.WorkloadInstance, ID: 7}, Resource: target.Resource{ID: 8}}
	at := time.Date(2026, 1, 1, 10, 0, 40, 0, time.UTC)
	for _, c := range []struct {
		reason string
		end    ContainerTermination
		want   Event
	}{
		{
			"killed for its memory",
			ContainerTermination{"app", 2, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: "secret"}, at},
			Event{UID: "u/app/2", Reason: "OOMKilled", Message: "Pod web-1: container app ended with exit code 137 (OOMKilled): it needed more memory than it may have"},
		},
		{
			"restarted",
			ContainerTermination{"app", 3, &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "secret"}, at},
			Event{UID: "u/app/3", Reason: "ContainerRestarted", Message: "Pod web-1: container app ended with exit code 1 (Error), restart 3"},
		},
		{
			"restarted without a reason",
			ContainerTermination{"app", 3, &corev1.ContainerStateTerminated{ExitCode: 2}, at},
			Event{UID: "u/app/3", Reason: "ContainerRestarted", Message: "Pod web-1: container app ended with exit code 2 (Error), restart 3"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := NewTermination(pod, c.end, attribution)
			c.want.Workload, c.want.ResourceID, c.want.Involved = attribution.Instance, 8, pod.Ref
			c.want.InvolvedUID, c.want.InvolvedVersion = "u", "v1"
			c.want.Type, c.want.Time, c.want.MayHaveRow, c.want.Synthetic, c.want.ResourceVersion = "Warning", at, true, true, got.ResourceVersion
			if got != c.want {
				t.Errorf("it is\n%+v, want\n%+v", got, c.want)
			}
			if again := NewTermination(pod, c.end, attribution); again.Version() != got.Version() || got.ResourceVersion == "" {
				t.Errorf("versions %q and %q of the same", got.Version(), again.Version())
			}
			later := c.end
			later.Time = at.Add(time.Second)
			if NewTermination(pod, later, attribution).Version() == got.Version() {
				t.Error("another time makes no version")
			}
		})
	}
}

func TestNewTransition(t *testing.T) {
	ref := target.Ref{Group: "control-plane.threeport.io", Kind: "ThreeportWorkload", Name: "web"}
	at := time.Date(2026, 1, 1, 11, 0, 40, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		reason string
		change target.HealthTransition
		want   Event
	}{
		{
			"down",
			target.HealthTransition{UID: "cr", From: "Healthy", To: "Down", Reason: "Crash", Message: "5 pods crash", At: at},
			Event{UID: "cr/2026-01-01T10:00:40Z/Down", Type: "Warning", Reason: "WorkloadDown", Message: "Workload web is Down, it was Healthy: 5 pods crash"},
		},
		{
			"unhealthy, with its reason only",
			target.HealthTransition{UID: "cr", From: "Healthy", To: "Unhealthy", Reason: "Crash", At: at},
			Event{UID: "cr/2026-01-01T10:00:40Z/Unhealthy", Type: "Warning", Reason: "WorkloadUnhealthy", Message: "Workload web is Unhealthy, it was Healthy: Crash"},
		},
		{
			"the first",
			target.HealthTransition{UID: "cr", To: "Healthy", At: at},
			Event{UID: "cr/2026-01-01T10:00:40Z/Healthy", Type: "Normal", Reason: "WorkloadHealthy", Message: "Workload web is Healthy"},
		},
		{
			"rolling out",
			target.HealthTransition{UID: "cr", From: "Healthy", To: "Reconciling", Message: "it rolls out", At: at},
			Event{UID: "cr/2026-01-01T10:00:40Z/Reconciling", Type: "Normal", Reason: "WorkloadReconciling", Message: "Workload web is Reconciling, it was Healthy: it rolls out"},
		},
		{
			"not seen",
			target.HealthTransition{UID: "cr", From: "Down", To: "Unknown", Message: "forbidden", At: at},
			Event{UID: "cr/2026-01-01T10:00:40Z/Unknown", Type: "Normal", Reason: "WorkloadUnknown", Message: "Workload web is Unknown, it was Down: forbidden"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			instance := target.Instance{Type: target.HelmWorkloadInstance, ID: 7}
			got := NewTransition(ref, instance, c.change)
			c.want.InvolvedUID = "cr"
			c.want.Workload, c.want.Involved, c.want.Time, c.want.MayHaveRow, c.want.Synthetic, c.want.ResourceVersion = instance, ref, at.UTC(), true, true, got.ResourceVersion
			if got != c.want {
				t.Errorf("it is\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}
