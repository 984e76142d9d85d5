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

// posts returns the statuses that were offered of an instance, and when.
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

// A status is posted on change only, the first at once, and from then on at most once in an interval; the latest wins.
func TestStatusesAreSpaced(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusInterval = time.Second
	w, s := scripted(t, config)
	w.sink.clock = func(report observe.Report) time.Time { // of a status, when it was found due
		if s, ok := report.(observe.Status); ok {
			return w.watcher.assessor.LastStatusTime(s.Workload)
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
	other := w.track("other", "v1 ConfigMap other") // another instance does not wait for this one
	w.expectStatus(other, "Healthy")
	statuses := []health.Status{health.Reconciling, health.Healthy}
	turn := 0
	w.eventually("statuses that change for a while to be posted some times", func() string {
		s.say("ConfigMap conf", statuses[turn%2])
		w.watcher.ReassessAll()
		turn++
		posted, _ := w.sink.posts(wl.Instance)
		return complain(len(posted) < 3 || time.Since(begin) < 3500*time.Millisecond, fmt.Sprintf("they were %q", posted))
	})
	s.say("ConfigMap conf", health.Unhealthy)
	w.watcher.ReassessAll()
	w.expectStatus(wl, "Unhealthy")
	posted, times := w.sink.posts(wl.Instance)
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap < config.StatusInterval {
			t.Errorf("%s comes %s after %s, want %s at least", posted[i], gap, posted[i-1], config.StatusInterval)
		}
		if posted[i] == posted[i-1] {
			t.Errorf("%s is posted twice: %q", posted[i], posted)
		}
	}
	took := time.Since(begin)
	if most := int(took/config.StatusInterval) + 2; len(posted) > most {
		t.Errorf("%q were posted in %s, want %d at most", posted, took, most)
	}
	w.during(1200*time.Millisecond, func() string {
		again, _ := w.sink.posts(wl.Instance)
		return complain(!slices.Equal(again, posted), fmt.Sprintf("%q were posted though nothing changed", again))
	})
}

func TestTheFirstStatusDoesNotWait(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusInterval = time.Hour
	w, s := scripted(t, config)
	s.say("ConfigMap conf", health.Healthy)
	w.run()
	w.create(configMap("conf"))
	w.expectStatus(w.track("web", "v1 ConfigMap conf"), "Healthy")
}

// A status that comes and goes is held, and said to do so, until it has been quiet.
func TestFlappingIsDamped(t *testing.T) {
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
		w.watcher.ReassessAll()
		w.expectHealth(wl, seen+" ", says...)
		w.expectStatus(wl, seen)
	}
	for range 3 { // rollouts are no reason
		turn(health.Reconciling, "Reconciling")
		turn(health.Healthy, "Healthy")
	}
	turn(health.Unhealthy, "Unhealthy")
	turn(health.Healthy, "Healthy")
	turn(health.Unhealthy, "Unhealthy")
	turn(health.Healthy, "Unhealthy", "Said: somebody said so, 4 changes in 10 min")
	sight := w.watcher.ResourceStatuses(wl.Name)[0]
	if sight.Health != "Healthy" {
		t.Errorf("the resource is %s, want it as it is", sight.Health)
	}
	if inventory := w.inventory(wl.Instance); inventory.Status.Status != "Unhealthy" {
		t.Errorf("the inventory has the status %q, want what is posted", inventory.Status.Status)
	}
	// Shortly before the time is over it is as before, and then it ends by itself.
	ahead.Store(int64(5*time.Minute - 2*time.Second))
	w.watcher.queues.statusLater(wl.Name)
	w.expectStatus(wl, "Healthy")
	w.expectHealth(wl, "Healthy ")
}
