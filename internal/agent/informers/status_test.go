package informers

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	w.sink.clock = func(report observe.Report) time.Time { // of a status, when it was found due: the watcher offers it under its mutex
		if s, ok := report.(observe.Status); ok {
			return w.watcher.posted[s.Workload].at
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
	w, s := scripted(t, quick())
	w.watcher.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
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
	w.watcher.markStatus(wl.Name)
	w.expectStatus(wl, "Healthy")
	w.expectHealth(wl, "Healthy ")
}

// What a change of one pod costs does not grow with the number of pods.
func BenchmarkChangeOfOnePod(b *testing.B) {
	for _, pods := range []int{5, 500, 50_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			board, change := crowd(pods)
			b.ReportAllocs()
			for i := range b.N {
				change(i)
				if len(board.judgements("web")) != 1 {
					b.Fatal("there is no verdict")
				}
			}
		})
	}
}

func TestChangeOfOnePodDoesNotReadTheOthers(t *testing.T) {
	cost := func(pods int) float64 {
		board, change := crowd(pods)
		i := 0
		return testing.AllocsPerRun(1000, func() {
			change(i)
			board.judgements("web")
			i++
		})
	}
	if few, many := cost(5), cost(5000); many > few+5 {
		t.Errorf("a change of one pod makes %v allocations with 5,000 pods, and %v with 5", many, few)
	}
}

// crowd returns a board with a Deployment of many pods, of which some fail, and what changes one of those that do not.
func crowd(pods int) (*board, func(i int)) {
	b := newBoard()
	web := target.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}
	claim := target.Attribution{Workload: "web", Resource: target.Resource{Ref: web}, Listed: true}
	b.assess(claim, target.Identity{Ref: web, UID: "web"}, health.OwnerPath{}, assessment(health.Reconciling))
	claim.Listed = false
	id := func(i int) target.Identity {
		return target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("web-", i)}, UID: types.UID(fmt.Sprint("pod-", i))}
	}
	for i := range pods {
		status := health.Healthy
		if i%3 == 0 {
			status = health.Down
		}
		b.assess(claim, id(i), health.OwnerPath{}.Append(health.ObjectRef{Kind: "ReplicaSet", Name: "web-1"}), assessment(status))
	}
	turns := []health.Assessment{assessment(health.Unhealthy), assessment(health.Healthy)}
	one := id(1)
	return b, func(i int) {
		b.assess(claim, one, health.OwnerPath{}.Append(health.ObjectRef{Kind: "ReplicaSet", Name: "web-1"}), turns[i%2])
	}
}
