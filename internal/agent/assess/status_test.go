package assess

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// fakeCluster has every resource, and watches every kind.
type fakeCluster struct{}

func (fakeCluster) ResourceStatus(r target.Resource) target.ResourceStatus {
	return target.ResourceStatus{Resource: r, State: target.Present}
}

func (fakeCluster) Follows(schema.GroupKind) bool { return true }

// noTransitions has recorded no transition.
type noTransitions struct{}

func (noTransitions) Since(string, string) time.Time      { return time.Time{} }
func (noTransitions) CauseSince(string, string) time.Time { return time.Time{} }

// newAssessor returns an assessor with a clock that only the test advances.
func newAssessor() (a *Assessor, clock *time.Time) {
	clock = new(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	config := Config{StatusInterval: 5 * time.Second, Now: func() time.Time { return *clock }}
	return New(config, target.NewRegistry(), fakeCluster{}, noTransitions{}, NewMetrics(prometheus.NewRegistry()), logr.Discard()), clock
}

func TestAssessor_AdmitStatus_SpacesStatuses(t *testing.T) {
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	a, clock := newAssessor()
	for _, c := range []struct {
		reason        string
		after         time.Duration
		status, cause string
		wait          time.Duration
		since         bool // since now
	}{
		{"the first status does not wait", 0, "Healthy", "", 0, false},
		{"a repeat does not wait", time.Second, "Healthy", "", 0, false},

		{"another word waits for the interval", time.Second, "Down", "crash", 3 * time.Second, false},
		{"another word after the interval", 3 * time.Second, "Down", "crash", 0, true},

		{"another cause waits for the interval", time.Second, "Down", "no memory", 4 * time.Second, false},
		{"another cause after the interval", 4 * time.Second, "Down", "no memory", 0, false},
		{"another word waits for the last new word only", time.Second, "Healthy", "", 0, true},
	} {
		*clock = clock.Add(c.after)
		status, wait := a.AdmitStatus(observe.Status{Workload: instance, Status: c.status, Cause: c.cause})
		if wait != c.wait || status.Since.Equal(*clock) != c.since {
			t.Errorf("%s: wait is %s, since %s at %s; want %s, since now: %t", c.reason, wait, status.Since, *clock, c.wait, c.since)
		}
	}
	a.ForgetInstance(instance)
	if _, wait := a.AdmitStatus(observe.Status{Workload: instance, Status: "Down"}); wait != 0 {
		t.Errorf("the first status after ForgetInstance waits for %s", wait)
	}
}

// recordedTransition is the last transition of every workload: to Down, at a time.
type recordedTransition struct {
	noTransitions

	at time.Time
}

func (r recordedTransition) Since(_, status string) time.Time {
	if status == "Down" {
		return r.at
	}
	return time.Time{}
}

// A second workload of an instance was Unhealthy, and is gone. The instance is Down since then, although the workload that is left was
// Down before.
func TestAssessor_Since_OtherWorkloadEnds(t *testing.T) {
	a, clock := newAssessor()
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	for _, name := range []string{"web", "web-copy"} {
		a.targets.Track(target.Workload{Name: name, Instance: instance})
	}
	recorded := *clock
	a.transitions = recordedTransition{at: recorded}
	report := func(word string) time.Time {
		*clock = clock.Add(time.Minute)
		status := observe.Status{Workload: instance, Status: word}
		status.Since = a.since(status, a.targets.WorkloadsOf(instance))
		due, _ := a.AdmitStatus(status)
		return due.Since
	}
	report("Healthy")
	report("Unhealthy")
	a.targets.Forget("web-copy")
	left := clock.Add(time.Minute)
	for range 2 {
		if since := report("Down"); !since.Equal(left) {
			t.Errorf("the instance has its status since %s, want %s", since, left)
		}
	}
	report("Unhealthy")
	a.transitions = recordedTransition{at: clock.Add(time.Second)}
	if since := report("Down"); !since.Equal(clock.Add(time.Second - time.Minute)) {
		t.Errorf("the next transition is of %s", since)
	}
}

// The time of a status is that of the recorded transition, also if the status was reported before the transition was recorded.
func TestAssessor_Since_IsTimeOfTransition(t *testing.T) {
	instance, workloads := target.Instance{Type: target.WorkloadInstance, ID: 1}, []target.Workload{{Name: "web"}}
	a, clock := newAssessor()
	report := func(word string) time.Time {
		*clock = clock.Add(time.Minute)
		status := observe.Status{Workload: instance, Status: word}
		status.Since = a.since(status, workloads)
		due, wait := a.AdmitStatus(status)
		if wait != 0 {
			t.Fatalf("the status %s waits for %s", word, wait)
		}
		return due.Since
	}
	report("Healthy")
	if since := report("Down"); !since.Equal(*clock) {
		t.Errorf("without a transition, it is Down since %s, want %s", since, *clock)
	}
	recorded := clock.Add(-time.Second)
	if !a.SinceDiffers(instance, "Down", recorded) {
		t.Error("the reported time is that of the transition")
	}
	a.transitions = recordedTransition{at: recorded}
	if since := report("Down"); !since.Equal(recorded) {
		t.Errorf("with a transition, it is Down since %s, want %s", since, recorded)
	}
	if a.SinceDiffers(instance, "Down", recorded) {
		t.Error("the reported time is not that of the transition")
	}
	if since := report("Healthy"); !since.Equal(*clock) {
		t.Errorf("after the transition to Down, it is Healthy since %s, want %s", since, *clock)
	}
	if since := report("Down"); !since.Equal(recorded) {
		t.Errorf("a new report of a recorded status is of %s, want %s", since, recorded)
	}
}

func TestAssessor_AdmitTree_SpacesTreesBySize(t *testing.T) {
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	a, clock := newAssessor()
	if due, wait := a.AdmitTree(instance); !due || wait != 0 {
		t.Errorf("the first tree: due is %t, wait %s", due, wait)
	}
	first := a.nextRevision(instance, 10)
	if due, wait := a.AdmitTree(instance); due || wait != 0 {
		t.Errorf("an unchanged tree: due is %t, wait %s", due, wait)
	}
	if !a.TreeChanged(instance) || a.TreeChanged(instance) {
		t.Error("TreeChanged reports the first change only")
	}
	if due, wait := a.AdmitTree(instance); due || wait != 5*time.Second {
		t.Errorf("a change within the interval: due is %t, wait %s", due, wait)
	}
	*clock = clock.Add(5 * time.Second)
	if due, _ := a.AdmitTree(instance); !due {
		t.Error("a change after the interval is not due")
	}
	if second := a.nextRevision(instance, 4*objectsPerTree); second <= first {
		t.Errorf("revision %d follows %d", second, first)
	}
	a.TreeChanged(instance)
	if due, wait := a.AdmitTree(instance); due || wait != 20*time.Second {
		t.Errorf("a change of a tree of four times the size: due is %t, wait %s", due, wait)
	}
}
