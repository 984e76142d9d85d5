package informers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// trees returns the trees that were offered of an instance, and when.
func (r *recorder) trees(instance target.Instance) (trees []observe.Tree, times []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, report := range r.offered {
		if tree, ok := report.(observe.Tree); ok && tree.Workload == instance {
			trees, times = append(trees, tree), append(times, r.times[i])
		}
	}
	return trees, times
}

// branches tells of a tree in words: each object below another with that one's name, and its health.
func branches(objects []observe.TreeObject) string {
	names := map[types.UID]string{}
	for _, o := range objects {
		if o.Object.UID != "" {
			names[o.Object.UID] = o.Object.Name
		}
	}
	var out []string
	for _, o := range objects {
		text := fmt.Sprintf("%s %s %s", o.Object.Kind, o.Object.Name, o.Health)
		if o.Owner != "" {
			text = names[o.Owner] + " > " + text
		}
		if o.Listed {
			text += " " + string(o.State)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (w *world) expectTree(wl target.Workload, want string) {
	w.Helper()
	w.eventually("the tree", func() string {
		trees, _ := w.sink.trees(wl.Instance)
		if len(trees) == 0 {
			return "none was offered"
		}
		if got := branches(trees[len(trees)-1].Objects()); got != want {
			return fmt.Sprintf("it is %q, want %q", got, want)
		}
		return ""
	})
}

// A tree has all that is listed, also what does not exist, and what descends from it, below what owns it.
func TestATreeHasWhatIsListedAndWhatDescends(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	s.say("ConfigMap conf", health.Healthy)
	s.say("Pod hook", health.Unhealthy)
	w.watcher.Detail(true)
	w.run()
	conf := w.create(configMap("conf"))
	hook := w.create(owned(pod("hook"), conf))
	wl := w.track("web", "v1 ConfigMap conf", "v1 ConfigMap none", "example.com/v1 Nothing x")
	w.expectTree(wl, "ConfigMap conf Unhealthy Present, ConfigMap none Down Absent, Nothing x Unknown KindNotInstalled, conf > Pod hook Unhealthy")
	trees, _ := w.sink.trees(wl.Instance)
	for _, o := range trees[len(trees)-1].Objects() {
		if (o.Object.UID == "") != (o.State == target.Absent || o.State == target.KindNotInstalled) {
			t.Errorf("%s has the UID %q", o.Object.Ref, o.Object.UID)
		}
		if o.Health != "Healthy" && (o.Reason == "" || o.Cause == "") {
			t.Errorf("of %s is not said why: %+v", o.Object.Ref, o)
		}
	}
	w.remove(hook)
	w.expectTree(wl, "ConfigMap conf Healthy Present, ConfigMap none Down Absent, Nothing x Unknown KindNotInstalled")
	w.targets.Forget(wl.Name)
	w.eventually("the tree to be forgotten", func() string {
		return complain(!w.sink.forgotten(observe.Tree{Workload: wl.Instance}.Key()), "it is not")
	})
}

// What is between a resource and its pods comes to what these come to; what is left of earlier revisions is not shown.
func TestWhatStandsBetweenIsJudgedByWhatIsBelow(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	s.say("ConfigMap conf", health.Healthy)
	s.say("Pod one", health.Healthy)
	s.say("Pod two", health.Healthy)
	w.watcher.Detail(true)
	w.run()
	conf := w.create(configMap("conf"))
	now := w.create(owned(replicaSet("now"), conf))
	w.create(owned(replicaSet("before"), conf))
	w.create(owned(pod("one"), now))
	w.create(owned(pod("two"), now))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectTree(wl, "ConfigMap conf Healthy Present, now > Pod one Healthy, now > Pod two Healthy, conf > ReplicaSet now Healthy")
	s.say("Pod two", health.Down)
	w.watcher.ReassessAll()
	w.expectTree(wl, "ConfigMap conf Unhealthy Present, now > Pod one Healthy, now > Pod two Down, conf > ReplicaSet now Unhealthy")
}

func TestTreesAreSpacedAndOfferedOnChangeOnly(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusInterval = time.Second
	w, s := scripted(t, config)
	s.say("ConfigMap conf", health.Healthy)
	w.watcher.Detail(true)
	w.run()
	w.create(configMap("conf"))
	begin := time.Now()
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectTree(wl, "ConfigMap conf Healthy Present")
	statuses := []health.Status{health.Reconciling, health.Healthy}
	turn := 0
	w.during(3500*time.Millisecond, func() string {
		s.say("ConfigMap conf", statuses[turn%2])
		w.watcher.ReassessAll()
		turn++
		return ""
	})
	s.say("ConfigMap conf", health.Unhealthy)
	w.watcher.ReassessAll()
	w.expectTree(wl, "ConfigMap conf Unhealthy Present")
	_, times := w.sink.trees(wl.Instance)
	took := time.Since(begin)
	if most := int(took/config.StatusInterval) + 2; len(times) < 3 || len(times) > most {
		t.Errorf("%d trees were offered in %s, want 3 at least and %d at most", len(times), took, most)
	}
	w.during(1500*time.Millisecond, func() string {
		_, again := w.sink.trees(wl.Instance)
		return complain(len(again) > len(times)+1, "trees are offered though nothing changed")
	})
}

// What is more than a word is told only where it is taken, and all anew when that begins and ends.
func TestDetailIsToldWhereItIsTaken(t *testing.T) {
	t.Parallel()
	owed := observe.DeliveryCounts{Dropped: 4}
	config := quick()
	config.Delivery = func(target.Instance) observe.DeliveryCounts { return owed }
	w, s := scripted(t, config)
	s.say("ConfigMap conf", health.Unhealthy)
	w.run()
	w.create(configMap("conf"))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectStatus(wl, "Unhealthy")
	last := func() observe.Status {
		w.sink.mu.Lock()
		defer w.sink.mu.Unlock()
		for _, report := range slices.Backward(w.sink.offered) {
			if s, ok := report.(observe.Status); ok && s.Workload == wl.Instance {
				return s
			}
		}
		return observe.Status{}
	}
	if got := last(); got != (observe.Status{Workload: wl.Instance, Status: "Unhealthy"}) {
		t.Errorf("the word is %+v", got)
	}
	if trees, _ := w.sink.trees(wl.Instance); len(trees) > 0 {
		t.Error("a tree is offered")
	}
	w.watcher.Detail(true)
	w.eventually("the cause", func() string {
		got := last()
		return complain(got.Round == 0 || got.Reason == "" || got.Cause == "" || got.DeliveryCounts != owed, fmt.Sprintf("it is %+v", got))
	})
	w.expectTree(wl, "ConfigMap conf Unhealthy Present")
	first := last()
	s.say("ConfigMap conf", health.Down)
	w.watcher.ReassessAll()
	w.eventually("since when", func() string {
		got := last()
		return complain(got.Status != "Down" || time.Since(got.Since) > time.Minute || got.Since.IsZero(), fmt.Sprintf("it is %+v", got))
	})
	if inventory := w.inventory(wl.Instance); inventory.Status.Version() != last().Version() {
		t.Errorf("the inventory has %+v, offered is %+v", inventory.Status, last())
	}
	w.watcher.Detail(true)
	w.eventually("another round", func() string {
		return complain(last().Round <= first.Round, "there is none")
	})
	w.watcher.Detail(false)
	w.eventually("the word alone", func() string {
		got := last()
		return complain(got != observe.Status{Workload: wl.Instance, Status: "Down"}, fmt.Sprintf("it is %+v", got))
	})
}

func TestTheClusterHasAUID(t *testing.T) {
	t.Parallel()
	clients, err := NewClients(shared.reader)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := clients.ClusterUID(t.Context())
	again, err2 := clients.ClusterUID(t.Context())
	if err != nil || err2 != nil || uid == "" || uid != again {
		t.Errorf("it is %q and %q: %v, %v", uid, again, err, err2)
	}
}
