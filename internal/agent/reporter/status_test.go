package reporter

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// posts returns the statuses that were offered of an instance, with their times.
func (r *recorder) posts(instance target.Instance) (statuses []string, times []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, report := range r.offered {
		if s, ok := report.(observe.Status); ok && s.Workload == instance {
			statuses, times = append(statuses, s.Status), append(times, r.times[i])
		}
	}
	return statuses, times
}

// Statuses are offered on change only: the first at once, later ones spaced, and the latest one wins.
func TestReporter_Statuses_AreSpaced(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusInterval = time.Second
	w, s := scripted(t, config)
	w.sink.clock = func(report observe.Report) time.Time { // of a status: when it was due
		if s, ok := report.(observe.Status); ok {
			return w.reporter.assessor.LastStatusTime(s.Workload)
		}
		return time.Now()
	}
	s.say("ConfigMap conf", health.Healthy)
	w.run()
	w.create(configMap("conf"))
	w.create(configMap("other"))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectStatus(wl, "Healthy")
	begin := time.Now()
	other := w.track("other", "v1 ConfigMap other") // instances do not wait for each other
	w.expectStatus(other, "Healthy")
	statuses := []health.Status{health.Reconciling, health.Healthy}
	turn := 0
	w.eventually("changing statuses are offered", func() string {
		s.say("ConfigMap conf", statuses[turn%2])
		w.reporter.ReassessAll()
		turn++
		posted, _ := w.sink.posts(wl.Instance)
		return complain(len(posted) < 3 || time.Since(begin) < 3500*time.Millisecond, fmt.Sprintf("they were %q", posted))
	})
	s.say("ConfigMap conf", health.Unhealthy)
	w.reporter.ReassessAll()
	w.expectStatus(wl, "Unhealthy")
	posted, times := w.sink.posts(wl.Instance)
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap < config.StatusInterval {
			t.Errorf("%s is offered %s after %s, want %s at least", posted[i], gap, posted[i-1], config.StatusInterval)
		}
		if posted[i] == posted[i-1] {
			t.Errorf("%s is offered twice: %q", posted[i], posted)
		}
	}
	took := time.Since(begin)
	if most := int(took/config.StatusInterval) + 2; len(posted) > most {
		t.Errorf("%q were offered in %s, want %d at most", posted, took, most)
	}
	w.during(1200*time.Millisecond, func() string {
		again, _ := w.sink.posts(wl.Instance)
		return complain(!slices.Equal(again, posted), fmt.Sprintf("%q were offered though nothing changed", again))
	})
}

func TestReporter_FirstStatus_DoesNotWait(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusInterval = time.Hour
	w, s := scripted(t, config)
	s.say("ConfigMap conf", health.Healthy)
	w.run()
	w.create(configMap("conf"))
	w.expectStatus(w.track("web", "v1 ConfigMap conf"), "Healthy")
}

// A flapping status is damped, and its cause says so, until it is stable.
func TestReporter_FlappingStatus_IsDamped(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	config := quick()
	config.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	w, s := scripted(t, config)
	s.say("ConfigMap conf", health.Healthy)
	w.run()
	w.create(configMap("conf"))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectStatus(wl, "Healthy")
	turn := func(status health.Status, seen string, says ...string) {
		t.Helper()
		s.say("ConfigMap conf", status)
		w.reporter.ReassessAll()
		w.expectHealth(wl, seen+" ", says...)
		w.expectStatus(wl, seen)
	}
	for range 3 { // rollouts do not count as flapping
		turn(health.Reconciling, "Reconciling")
		turn(health.Healthy, "Healthy")
	}
	turn(health.Unhealthy, "Unhealthy")
	turn(health.Healthy, "Healthy")
	turn(health.Unhealthy, "Unhealthy")
	turn(health.Healthy, "Unhealthy", "Flapping: Healthy now, but 4 changes in 10 min: Unhealthy until 5 min pass without one; before: somebody said so")
	resource := w.statuses(wl)[0]
	if resource.Health != "Healthy" {
		t.Errorf("the resource is %s, want it undamped", resource.Health)
	}
	if state := w.desiredState(wl.Instance); state.Status.Status != "Unhealthy" {
		t.Errorf("the desired state has the status %q, want the damped one", state.Status.Status)
	}
	// The damping ends by itself after 5 minutes.
	ahead.Store(int64(5*time.Minute - 2*time.Second))
	w.reporter.queues.statusLater(wl.Name)
	w.expectStatus(wl, "Healthy")
	w.expectHealth(wl, "Healthy ")
}
