package assess

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// crashLoop has workloads that list one Deployment with two Pods, which are OOM-killed again and again.
type crashLoop struct {
	*testing.T
	*Assessor
	clock      *time.Time
	deployment Object
	workloads  []string
}

func newCrashLoop(t *testing.T, workloads ...string) *crashLoop {
	t.Helper()
	c := &crashLoop{T: t, workloads: workloads, deployment: webDeployment(t, 1, "app:1", 2, 0)}
	c.Assessor, c.clock = newAssessor()
	for i, name := range workloads {
		instance := target.Instance{Type: target.WorkloadInstance, ID: int64(i + 1)}
		c.targets.Track(target.Workload{Name: name, Instance: instance, Resources: []target.Resource{{Ref: c.deployment.Ref}}})
	}
	c.assess(c.deployment)
	c.pods(false)
	c.note()
	return c
}

func webDeployment(t *testing.T, generation int64, image string, replicas, ready int) Object {
	t.Helper()
	return object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns, uid: d, generation: %d},
  spec: {replicas: %d, template: {spec: {containers: [{name: app, image: "%s"}]}}},
  status: {observedGeneration: %d, replicas: %d, updatedReplicas: %d, readyReplicas: %d, availableReplicas: %d}}`,
		generation, replicas, image, generation, replicas, replicas, ready, ready))
}

// assess assesses an object for each workload.
func (c *crashLoop) assess(o Object) {
	judged := c.Judge(o, o.Kind == "Deployment")
	for _, name := range c.workloads {
		c.Keep(target.Attribution{Workload: name, Resource: target.Resource{Ref: c.deployment.Ref}, Listed: o.Kind == "Deployment"}, judged)
	}
}

// pods assesses the Pods: they run after an OOM kill, or are OOM-killed.
func (c *crashLoop) pods(run bool) {
	killed := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(*c.clock)}
	app := corev1.ContainerStatus{Name: "app", RestartCount: 3, State: corev1.ContainerState{Terminated: killed}}
	ready := corev1.ConditionFalse
	if run {
		app.LastTerminationState, ready = app.State, corev1.ConditionTrue
		app.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(*c.clock)}}
	}
	for _, name := range []string{"web-1", "web-2"} {
		pod := &corev1.Pod{Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{app},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		}}
		id := target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: name}, UID: types.UID(name)}
		c.assess(Object{Identity: id, Cached: pod})
	}
}

func (c *crashLoop) note() {
	for _, name := range c.workloads {
		c.Note(name)
	}
}

// restart starts the Pods, and kills them within a second. The controller reads the verdict of a workload at once. The reporter
// notes it a second later, when the Pods are killed again.
func (c *crashLoop) restart(read func(workload string)) {
	advance := func(d time.Duration) { *c.clock = c.clock.Add(d) }
	c.pods(true)
	advance(200 * time.Millisecond)
	for _, name := range c.workloads {
		read(name)
	}
	advance(500 * time.Millisecond)
	c.pods(false)
	advance(500 * time.Millisecond)
	c.note()
	advance(5 * time.Second) // the controller writes a status as often
	for _, name := range c.workloads {
		read(name)
	}
	advance(20 * time.Second)
}

// Short states that only the controller sees are changes. Without them, each restart was two transitions of each workload.
func TestAssessor_CrashLoop_IsDampedByWhatReadersSee(t *testing.T) {
	c := newCrashLoop(t, "web", "api")
	seen := map[string][]string{}
	for range 20 {
		c.restart(func(workload string) {
			status, _, _ := c.Health(workload)
			if all := seen[workload]; len(all) == 0 || all[len(all)-1] != status {
				seen[workload] = append(all, status)
			}
		})
	}
	for workload, all := range seen {
		if len(all) > 4 || all[len(all)-1] != string(health.Unhealthy) {
			t.Errorf("workload %s is %q in turn, want at most 4 statuses, and Unhealthy at last", workload, all)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d workloads have a status, want 2", len(seen))
	}
}

// A new spec of a listed object restarts the damping. A new status is no new spec, and neither is another number of replicas.
func TestAssessor_NewSpec_RestartsDamping(t *testing.T) {
	other := webDeployment(t, 7, "app:2", 2, 2)
	other.UID = "other"
	for _, tt := range []struct {
		reason     string
		deployment Object
		damped     bool
	}{
		{"a status", webDeployment(t, 1, "app:1", 2, 2), true},
		{"more replicas", webDeployment(t, 2, "app:1", 3, 3), true},
		{"another image", webDeployment(t, 2, "app:2", 2, 2), false},
		{"another object of the name", other, true},
	} {
		c := newCrashLoop(t, "web")
		for range 3 {
			c.restart(func(string) { c.Health("web") })
		}
		if _, _, message := c.Health("web"); !strings.Contains(message, "6 changes in 10 min") {
			t.Fatalf("%s: the message is %q before, want 6 changes", tt.reason, message)
		}
		for _, name := range []string{"web-1", "web-2"} {
			id := target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: name}, UID: types.UID(name)}
			c.Remove(target.Attribution{Workload: "web", Resource: target.Resource{Ref: c.deployment.Ref}}, id)
		}
		c.assess(tt.deployment)
		status, reason, message := c.Health("web")
		want := "Healthy : "
		if tt.damped {
			want = "Unhealthy CrashLoopBackOff: Healthy now, but 7 changes in 10 min: Unhealthy until 5 min pass without one; before: 2 pods CrashLoopBackOff: "
		}
		if got := status + " " + reason + ": " + message; !strings.HasPrefix(got, want) {
			t.Errorf("%s: the workload is %q, want %q", tt.reason, got, want)
		}
	}
}
