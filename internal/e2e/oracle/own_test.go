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

func TestCheckOfOwnEvents(t *testing.T) {
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
		"an end":                            {[]string{firstEnd}, add(firstEndRow()), nil},
		"an end that is not told":           {[]string{firstEnd}, add(), []string{lacks + "(pod/app/1) once, the API has 0 rows"}},
		"an end that is told twice":         {[]string{firstEnd}, add(firstEndRow(), firstEndRow()), []string{ended + " once, the API has 2 rows"}},
		"an end that nobody saw":            {nil, add(firstEndRow()), []string{unwanted + "ContainerRestarted"}},
		"two ends that show at a time":      {[]string{killed}, add(firstEndRow(), killedRow()), nil},
		"only the latest has to be told":    {[]string{firstEnd, killed}, add(killedRow()), nil},
		"and the latest has to":             {[]string{firstEnd, backOff}, add(firstEndRow()), []string{lacks + "(pod/app/2) once"}},
		"one end in two states is one":      {[]string{killed, backOff}, add(firstEndRow(), killedRow()), nil},
		"an end with a number of its state": {[]string{firstEnd, backOff}, add(firstEndRow(), with(killedRow(), func(r *threeport.WorkloadEvent) { r.RuntimeEventUID = new("pod/app/3") })), []string{unwanted + "OOMKilled", lacks}},
		"an end of a pod that is gone need not be told": {nil, func(s *scene) {
			s.sawPod(cache.DeletedFinalStateUnknown{Obj: s.ran(firstEnd)}, true)
			s.loses("pod")
		}, nil},
		"but may be": {nil, func(s *scene) {
			s.sawPod(s.ran(firstEnd), true)
			s.loses("pod")
			add(firstEndRow())(s)
		}, nil},
		"an end of a released workload's pod": {[]string{firstEnd}, func(s *scene) { s.workloads[0].Released = true }, nil},
		"an end that is counted as dropped": {
			[]string{firstEnd}, add(gapRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B were dropped")), nil,
		},
		"an end of nobody's pod": {nil, func(s *scene) {
			s.sees(pods, "web-1-a", "pod", "10")
			s.Events = slices.Delete(s.Events, 1, 2)
			s.ran(firstEnd)
			add(firstEndRow())(s)
		}, []string{unwanted + "ContainerRestarted"}},
		"an end with another time": {
			[]string{firstEnd}, add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Timestamp = &at })), []string{ended + " with time 2026-07-01T11:00:00Z, the API has 2026-07-01T12:00:00Z"},
		},
		"an end with another reason": {
			[]string{firstEnd}, add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Reason = new("OOMKilled") })), []string{ended + " with reason ContainerRestarted, the API has OOMKilled"},
		},
		"an end without its exit code": {
			[]string{firstEnd}, add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Message = new("Pod web-1-a: app Error") })), []string{ended + ` with "exit code 1" in its message`},
		},
		"an end for another instance": {
			[]string{firstEnd}, add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.WorkloadInstanceID = new(int64(chartID)) })), []string{ended + " with workload instance"},
		},
		"an end for no resource": {
			[]string{firstEnd}, add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.WorkloadResourceInstanceID = nil })), []string{ended + " with resource instance"},
		},
		"an end of the wrong type": {
			[]string{firstEnd}, add(with(firstEndRow(), func(r *threeport.WorkloadEvent) { r.Type = new("Normal") })), []string{ended + " with type Warning"},
		},
		"an end that an interrupted oracle missed": {nil, func(s *scene) {
			s.Interrupted()
			add(firstEndRow())(s)
		}, nil},
		"which is told twice": {nil, func(s *scene) {
			s.Interrupted()
			add(firstEndRow(), firstEndRow())(s)
		}, []string{ended + " once, the API has 2 rows"}},

		"a change":                                {[]string{down}, add(downRow()), nil},
		"a change that is not told":               {[]string{down}, add(), []string{"web: expected the agent to say that it is Down since 2026-07-01T11:01:00Z (cr/2026-07-01T11:01:00Z/Down) once, the API has 0 rows"}},
		"a change that is told twice":             {[]string{down}, add(downRow(), downRow()), []string{turned + " once, the API has 2 rows"}},
		"a change before the latest":              {[]string{down, well}, add(downRow()), []string{"web: expected the agent to say that it is Healthy since"}},
		"a change that is counted as dropped":     {[]string{down}, add(gapRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B were dropped")), nil},
		"a change of another type is not":         {[]string{down}, add(gapRow("gap", "1 Events (1 Normal, 0 Warning) that happened between A and B were dropped")), []string{"web: expected the agent to count", "web: expected the agent to say that it is Down"}},
		"a change that nobody saw":                {[]string{well}, add(downRow()), []string{unwanted + "WorkloadDown", "web: expected the agent to say that it is Healthy since"}},
		"a change that an interrupted one missed": {[]string{well}, func(s *scene) { s.Interrupted(); add(downRow())(s) }, []string{"web: expected the agent to say that it is Healthy since"}},
		"a change of a released workload":         {[]string{down}, func(s *scene) { s.workloads[0].Released = true }, nil},
		"a change of a ThreeportWorkload that is gone": {nil, func(s *scene) {
			s.sawWorkload(cache.DeletedFinalStateUnknown{Obj: s.changed(down)}, true)
		}, nil},
		"Unknown at first is no change": {[]string{`{health: Unknown, healthSince: "2026-07-01T11:01:00Z", healthChange: {}}`}, add(), nil},
		"nor is no status":              {[]string{`{}`}, add(), nil},
		"a change with another time": {
			[]string{down}, add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Timestamp = &at })), []string{turned + " with time 2026-07-01T11:01:00Z, the API has 2026-07-01T12:00:00Z"},
		},
		"a change of the wrong type": {
			[]string{down}, add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Type = new("Normal") })), []string{turned + " with type Warning"},
		},
		"a change with another reason": {
			[]string{down}, add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Reason = new("WorkloadUnhealthy") })), []string{turned + " with reason WorkloadDown"},
		},
		"a change for a resource": {
			[]string{down}, add(with(downRow(), func(r *threeport.WorkloadEvent) { r.WorkloadResourceInstanceID = new(int64(resourceID)) })), []string{turned + " with resource instance 0"},
		},
		"a change that does not say what was before": {
			[]string{down}, add(with(downRow(), func(r *threeport.WorkloadEvent) { r.Message = new("web is Down") })), []string{turned + ` with "Healthy" in its message`},
		},
		"a row with a UID of another form": {[]string{firstEnd}, add(firstEndRow(), ownRow("pod/app/one", "OOMKilled", "", "2026-07-01T11:01:00Z")), []string{unwanted + "OOMKilled"}},
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
