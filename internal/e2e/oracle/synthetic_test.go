package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// ran records a pod of the scene with a status of its container app.
func (s *scene) ran(status string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1-a", UID: "pod"}}
	c := corev1.ContainerStatus{}
	if err := yaml.UnmarshalStrict([]byte(status), &c); err != nil {
		panic(err.Error() + " in " + status)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{c}
	s.recordPod(pod, false)
	return pod
}

// changed records the ThreeportWorkload of web with a transition of its health.
func (s *scene) changed(status string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{metadata: {name: web, uid: cr}, status: "+status+"}"), &u.Object); err != nil {
		panic(err.Error() + " in " + status)
	}
	s.recordWorkload(u, false)
	return u
}

const (
	firstEnd = `{name: app, restartCount: 1, containerID: b, state: {running: {}}, lastState: {terminated: {containerID: a, exitCode: 1, reason: Error, finishedAt: "2026-07-01T11:00:00Z"}}}`
	backOff  = `{name: app, restartCount: 1, containerID: b, state: {waiting: {}}, lastState: {terminated: {containerID: b, exitCode: 137, reason: OOMKilled, finishedAt: "2026-07-01T11:00:30Z"}}}`
	killed   = `{name: app, restartCount: 1, containerID: b, state: {terminated: {containerID: b, exitCode: 137, reason: OOMKilled, finishedAt: "2026-07-01T11:00:30Z"}},
		lastState: {terminated: {containerID: a, exitCode: 1, reason: Error, finishedAt: "2026-07-01T11:00:00Z"}}}`
	down = `{health: Down, healthSince: "2026-07-01T11:01:00Z", healthChange: {from: Healthy}}`
	well = `{health: Healthy, healthSince: "2026-07-01T11:02:00Z", healthChange: {from: Down}}`
)

func ownRow(uid, reason, message, when string) threeport.WorkloadEvent {
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		panic(err)
	}
	r := row(uid, reason, message, at)
	r.Type = new("Warning")
	return r
}

func firstEndRow() threeport.WorkloadEvent {
	return ownRow("pod/app/1", "ContainerRestarted", "Pod web-1-a: container app ended with exit code 1 (Error)", "2026-07-01T11:00:00Z")
}

func killedRow() threeport.WorkloadEvent {
	return ownRow("pod/app/2", "OOMKilled", "Pod web-1-a: container app ended with exit code 137 (OOMKilled)", "2026-07-01T11:00:30Z")
}

func downRow() threeport.WorkloadEvent {
	r := ownRow("cr/2026-07-01T11:01:00Z/Down", "WorkloadDown", "web is Down, it was Healthy", "2026-07-01T11:01:00Z")
	r.WorkloadResourceInstanceID = nil
	return r
}

func TestCheck_SyntheticEvents(t *testing.T) {
	const ended = "web: expected the agent to report the termination of container app of Pod web-1-a (pod/app/1)"
	const lacks = "web: expected the agent to report the termination of a container of Pod web-1-a "
	const unwanted = "web: expected the agent to report only Events about objects of workloads, the API has "
	const turned = "web: expected the agent to report the transition of its health (cr/2026-07-01T11:01:00Z/Down)"
	add := func(rows ...threeport.WorkloadEvent) func(*scene) {
		return func(s *scene) { s.Events = append(s.Events, rows...) }
	}
	with := func(r threeport.WorkloadEvent, change func(*threeport.WorkloadEvent)) threeport.WorkloadEvent {
		change(&r)
		return r
	}
	for reason, c := range map[string]struct {
		seen   []string // statuses, in their order
		change func(*scene)
		want   []string // the beginning of each sentence
	}{
		"a termination": {seen: []string{firstEnd}, change: add(firstEndRow())},
		"a termination without a row": {
			seen:   []string{firstEnd},
			change: add(),
			want:   []string{lacks + "(pod/app/1) once, the API has 0 rows"},
		},
		"a termination with two rows": {
			seen:   []string{firstEnd},
			change: add(firstEndRow(), firstEndRow()),
			want:   []string{ended + " once, the API has 2 rows"},
		},
		"a termination that did not happen":       {change: add(firstEndRow()), want: []string{unwanted + "ContainerRestarted"}},
		"two terminations in one status":          {seen: []string{killed}, change: add(firstEndRow(), killedRow())},
		"only the latest termination needs a row": {seen: []string{firstEnd, killed}, change: add(killedRow())},
		"the latest termination without a row": {
			seen:   []string{firstEnd, backOff},
			change: add(firstEndRow()),
			want:   []string{lacks + "(pod/app/2) once"},
		},
		"one termination in two states of a container": {seen: []string{killed, backOff}, change: add(firstEndRow(), killedRow())},
		"a termination with the wrong restart count": {
			seen:   []string{firstEnd, backOff},
			change: add(firstEndRow(), with(killedRow(), func(r *threeport.WorkloadEvent) { r.RuntimeEventUID = new("pod/app/3") })),
			want:   []string{unwanted + "OOMKilled", lacks},
		},
		"a termination of a deleted pod without a row": {
			change: func(s *scene) {
				s.recordPod(cache.DeletedFinalStateUnknown{Obj: s.ran(firstEnd)}, true)
				s.loses("pod")
			},
		},
		"a termination of a deleted pod with a row": {
			change: func(s *scene) {
				s.recordPod(s.ran(firstEnd), true)
				s.loses("pod")
				add(firstEndRow())(s)
			},
		},
		"a termination of a released workload": {
			seen:   []string{firstEnd},
			change: func(s *scene) { s.workloads[0].Released = true },
		},
		"a termination that is counted as dropped": {
			seen:   []string{firstEnd},
			change: add(droppedRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B were dropped")),
		},
		"a termination of a pod without a workload": {
			change: func(s *scene) {
				s.sees(pods, "web-1-a", "pod", "10")
				s.Events = slices.Delete(s.Events, 1, 2)
				s.ran(firstEnd)
				add(firstEndRow())(s)
			},
			want: []string{unwanted + "ContainerRestarted"},
		},
		"a termination with another time": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Timestamp = &at })),
			want:   []string{ended + " with time 2026-07-01T11:00:00Z, the API has 2026-07-01T12:00:00Z"},
		},
		"a termination with another reason": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Reason = new("OOMKilled") })),
			want:   []string{ended + " with reason ContainerRestarted, the API has OOMKilled"},
		},
		"a termination without its exit code": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Message = new("Pod web-1-a: app Error") })),
			want:   []string{ended + ` with "exit code 1" in its message`},
		},
		"a termination for another instance": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.WorkloadInstanceID = new(int64(chartID)) })),
			want:   []string{ended + " with workload instance"},
		},
		"a termination for no resource": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.WorkloadResourceInstanceID = nil })),
			want:   []string{ended + " with resource instance"},
		},
		"a termination of the wrong type": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Type = new("Normal") })),
			want:   []string{ended + " with type Warning"},
		},
		"a termination that an interrupted oracle missed": {change: func(s *scene) {
			s.Interrupted()
			add(firstEndRow())(s)
		}},
		"a termination that an interrupted oracle missed, with two rows": {
			change: func(s *scene) {
				s.Interrupted()
				add(firstEndRow(), firstEndRow())(s)
			},
			want: []string{ended + " once, the API has 2 rows"},
		},

		"a transition": {seen: []string{down}, change: add(downRow())},
		"a transition without a row": {
			seen:   []string{down},
			change: add(),
			want:   []string{"web: expected the agent to report the transition to Down at 2026-07-01T11:01:00Z (cr/2026-07-01T11:01:00Z/Down) once, the API has 0 rows"},
		},
		"a transition with two rows": {
			seen:   []string{down},
			change: add(downRow(), downRow()),
			want:   []string{turned + " once, the API has 2 rows"},
		},
		"an earlier transition": {
			seen:   []string{down, well},
			change: add(downRow()),
			want:   []string{"web: expected the agent to report the transition to Healthy at"},
		},
		"a transition that is counted as dropped": {
			seen:   []string{down},
			change: add(droppedRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B were dropped")),
		},
		"a transition of another type than the dropped one": {
			seen:   []string{down},
			change: add(droppedRow("gap", "1 Events (1 Normal, 0 Warning) that happened between A and B were dropped")),
			want:   []string{"web: expected the agent to count", "web: expected the agent to report the transition to Down"},
		},
		"a transition that did not happen": {
			seen:   []string{well},
			change: add(downRow()),
			want:   []string{unwanted + "WorkloadDown", "web: expected the agent to report the transition to Healthy at"},
		},
		"a transition that an interrupted oracle missed": {
			seen:   []string{well},
			change: func(s *scene) { s.Interrupted(); add(downRow())(s) },
			want:   []string{"web: expected the agent to report the transition to Healthy at"},
		},
		"a transition of a released workload": {
			seen:   []string{down},
			change: func(s *scene) { s.workloads[0].Released = true },
		},
		"a transition of a deleted ThreeportWorkload": {
			change: func(s *scene) {
				s.recordWorkload(cache.DeletedFinalStateUnknown{Obj: s.changed(down)}, true)
			},
		},
		"a first transition to Unknown": {
			seen:   []string{`{health: Unknown, healthSince: "2026-07-01T11:01:00Z", healthChange: {}}`},
			change: add(),
		},
		"an empty status": {seen: []string{`{}`}, change: add()},
		"a transition with another time": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Timestamp = &at })),
			want:   []string{turned + " with time 2026-07-01T11:01:00Z, the API has 2026-07-01T12:00:00Z"},
		},
		"a transition of the wrong type": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Type = new("Normal") })),
			want:   []string{turned + " with type Warning"},
		},
		"a transition with another reason": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Reason = new("WorkloadUnhealthy") })),
			want:   []string{turned + " with reason WorkloadDown"},
		},
		"a transition for a resource": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.WorkloadResourceInstanceID = new(int64(resourceID)) })),
			want:   []string{turned + " with resource instance 0"},
		},
		"a transition without the previous health": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Message = new("web is Down") })),
			want:   []string{turned + ` with "Healthy" in its message`},
		},
		"a row with a UID of another form": {
			seen:   []string{firstEnd},
			change: add(firstEndRow(), ownRow("pod/app/one", "OOMKilled", "", "2026-07-01T11:01:00Z")),
			want:   []string{unwanted + "OOMKilled"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newScene()
			for _, status := range c.seen {
				if strings.HasPrefix(status, "{name: app") {
					s.ran(status)
				} else {
					s.changed(status)
				}
			}
			c.change(s)
			differences := s.Check(s.History, s.workloads)
			if len(differences) != len(c.want) {
				t.Fatalf("want %d differences, got\n%s", len(c.want), strings.Join(differences, "\n"))
			}
			slices.Sort(c.want)
			for i, want := range c.want {
				if !strings.HasPrefix(differences[i], want) {
					t.Errorf("want\n%s\ngot\n%s", want, differences[i])
				}
			}
		})
	}
}
