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

// ran is a pod of the scene with the status of its container app.
func (s *scene) ran(status string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1-a", UID: "pod"}}
	c := corev1.ContainerStatus{}
	if err := yaml.UnmarshalStrict([]byte(status), &c); err != nil {
		panic(err.Error() + " in " + status)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{c}
	s.sawPod(pod, false)
	return pod
}

// changed is the ThreeportWorkload of the scene's web, whose health changed.
func (s *scene) changed(status string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{metadata: {name: web, uid: cr}, status: "+status+"}"), &u.Object); err != nil {
		panic(err.Error() + " in " + status)
	}
	s.sawWorkload(u, false)
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
	const ended = "web: expected the agent to say that container app of Pod web-1-a ended (pod/app/1)"
	const lacks = "web: expected the agent to say that a container of Pod web-1-a ended "
	const unwanted = "web: expected the agent to report no Events but those about objects of workloads, the API has "
	const turned = "web: expected the agent to say that its health changed (cr/2026-07-01T11:01:00Z/Down)"
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
		"an end": {seen: []string{firstEnd}, change: add(firstEndRow())},
		"an end that is not told": {
			seen:   []string{firstEnd},
			change: add(),
			want:   []string{lacks + "(pod/app/1) once, the API has 0 rows"},
		},
		"an end that is told twice": {
			seen:   []string{firstEnd},
			change: add(firstEndRow(), firstEndRow()),
			want:   []string{ended + " once, the API has 2 rows"},
		},
		"an end that nobody saw":         {change: add(firstEndRow()), want: []string{unwanted + "ContainerRestarted"}},
		"two ends that show at a time":   {seen: []string{killed}, change: add(firstEndRow(), killedRow())},
		"only the latest has to be told": {seen: []string{firstEnd, killed}, change: add(killedRow())},
		"and the latest has to": {
			seen:   []string{firstEnd, backOff},
			change: add(firstEndRow()),
			want:   []string{lacks + "(pod/app/2) once"},
		},
		"one end in two states is one": {seen: []string{killed, backOff}, change: add(firstEndRow(), killedRow())},
		"an end with a number of its state": {
			seen:   []string{firstEnd, backOff},
			change: add(firstEndRow(), with(killedRow(), func(r *threeport.WorkloadEvent) { r.RuntimeEventUID = new("pod/app/3") })),
			want:   []string{unwanted + "OOMKilled", lacks},
		},
		"an end of a pod that is gone need not be told": {
			change: func(s *scene) {
				s.sawPod(cache.DeletedFinalStateUnknown{Obj: s.ran(firstEnd)}, true)
				s.loses("pod")
			},
		},
		"but may be": {
			change: func(s *scene) {
				s.sawPod(s.ran(firstEnd), true)
				s.loses("pod")
				add(firstEndRow())(s)
			},
		},
		"an end of a released workload's pod": {
			seen:   []string{firstEnd},
			change: func(s *scene) { s.workloads[0].Released = true },
		},
		"an end that is counted as dropped": {
			seen:   []string{firstEnd},
			change: add(gapRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B were dropped")),
		},
		"an end of nobody's pod": {
			change: func(s *scene) {
				s.sees(pods, "web-1-a", "pod", "10")
				s.Events = slices.Delete(s.Events, 1, 2)
				s.ran(firstEnd)
				add(firstEndRow())(s)
			},
			want: []string{unwanted + "ContainerRestarted"},
		},
		"an end with another time": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Timestamp = &at })),
			want:   []string{ended + " with time 2026-07-01T11:00:00Z, the API has 2026-07-01T12:00:00Z"},
		},
		"an end with another reason": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Reason = new("OOMKilled") })),
			want:   []string{ended + " with reason ContainerRestarted, the API has OOMKilled"},
		},
		"an end without its exit code": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Message = new("Pod web-1-a: app Error") })),
			want:   []string{ended + ` with "exit code 1" in its message`},
		},
		"an end for another instance": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.WorkloadInstanceID = new(int64(chartID)) })),
			want:   []string{ended + " with workload instance"},
		},
		"an end for no resource": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.WorkloadResourceInstanceID = nil })),
			want:   []string{ended + " with resource instance"},
		},
		"an end of the wrong type": {
			seen:   []string{firstEnd},
			change: add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Type = new("Normal") })),
			want:   []string{ended + " with type Warning"},
		},
		"an end that an interrupted oracle missed": {change: func(s *scene) {
			s.Interrupted()
			add(firstEndRow())(s)
		}},
		"which is told twice": {
			change: func(s *scene) {
				s.Interrupted()
				add(firstEndRow(), firstEndRow())(s)
			},
			want: []string{ended + " once, the API has 2 rows"},
		},

		"a change": {seen: []string{down}, change: add(downRow())},
		"a change that is not told": {
			seen:   []string{down},
			change: add(),
			want:   []string{"web: expected the agent to say that it is Down since 2026-07-01T11:01:00Z (cr/2026-07-01T11:01:00Z/Down) once, the API has 0 rows"},
		},
		"a change that is told twice": {
			seen:   []string{down},
			change: add(downRow(), downRow()),
			want:   []string{turned + " once, the API has 2 rows"},
		},
		"a change before the latest": {
			seen:   []string{down, well},
			change: add(downRow()),
			want:   []string{"web: expected the agent to say that it is Healthy since"},
		},
		"a change that is counted as dropped": {
			seen:   []string{down},
			change: add(gapRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B were dropped")),
		},
		"a change of another type is not": {
			seen:   []string{down},
			change: add(gapRow("gap", "1 Events (1 Normal, 0 Warning) that happened between A and B were dropped")),
			want:   []string{"web: expected the agent to count", "web: expected the agent to say that it is Down"},
		},
		"a change that nobody saw": {
			seen:   []string{well},
			change: add(downRow()),
			want:   []string{unwanted + "WorkloadDown", "web: expected the agent to say that it is Healthy since"},
		},
		"a change that an interrupted one missed": {
			seen:   []string{well},
			change: func(s *scene) { s.Interrupted(); add(downRow())(s) },
			want:   []string{"web: expected the agent to say that it is Healthy since"},
		},
		"a change of a released workload": {
			seen:   []string{down},
			change: func(s *scene) { s.workloads[0].Released = true },
		},
		"a change of a ThreeportWorkload that is gone": {
			change: func(s *scene) {
				s.sawWorkload(cache.DeletedFinalStateUnknown{Obj: s.changed(down)}, true)
			},
		},
		"Unknown at first is no change": {
			seen:   []string{`{health: Unknown, healthSince: "2026-07-01T11:01:00Z", healthChange: {}}`},
			change: add(),
		},
		"nor is no status": {seen: []string{`{}`}, change: add()},
		"a change with another time": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Timestamp = &at })),
			want:   []string{turned + " with time 2026-07-01T11:01:00Z, the API has 2026-07-01T12:00:00Z"},
		},
		"a change of the wrong type": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Type = new("Normal") })),
			want:   []string{turned + " with type Warning"},
		},
		"a change with another reason": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Reason = new("WorkloadUnhealthy") })),
			want:   []string{turned + " with reason WorkloadDown"},
		},
		"a change for a resource": {
			seen:   []string{down},
			change: add(with(downRow(), func(r *threeport.WorkloadEvent) { r.WorkloadResourceInstanceID = new(int64(resourceID)) })),
			want:   []string{turned + " with resource instance 0"},
		},
		"a change that does not say what was before": {
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
				t.Fatalf("expected %d sentences, got\n%s", len(c.want), strings.Join(differences, "\n"))
			}
			slices.Sort(c.want)
			for i, want := range c.want {
				if !strings.HasPrefix(differences[i], want) {
					t.Errorf("expected\n%s\ngot\n%s", want, differences[i])
				}
			}
		})
	}
}
