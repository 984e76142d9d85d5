package reporter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// trees returns the trees that were offered of an instance, with their times.
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

// branches formats a tree: each object with its owner's name and its health.
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
		if got := branches(trees[len(trees)-1].Objects); got != want {
			return fmt.Sprintf("it is %q, want %q", got, want)
		}
		return ""
	})
}

// A tree has all listed resources, also absent ones, and their descendants with their owners.
func TestReporter_Tree_HasListedResourcesAndDescendants(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	s.say("ConfigMap conf", health.Healthy)
	s.say("Pod hook", health.Unhealthy)
	w.run()
	conf := w.create(configMap("conf"))
	hook := w.create(owned(pod("hook"), conf))
	wl := w.track("web", "v1 ConfigMap conf", "v1 ConfigMap none", "example.com/v1 Nothing x")
	w.expectTree(wl, "ConfigMap conf Unhealthy Present, ConfigMap none Down Absent, Nothing x Unknown KindNotInstalled, conf > Pod hook Unhealthy")
	trees, _ := w.sink.trees(wl.Instance)
	for _, o := range trees[len(trees)-1].Objects {
		if (o.Object.UID == "") != (o.State == target.Absent || o.State == target.KindNotInstalled) {
			t.Errorf("%s has the UID %q", o.Object.Ref, o.Object.UID)
		}
		if o.Health != "Healthy" && (o.Reason == "" || o.Cause == "") {
			t.Errorf("%s has no reason or cause: %+v", o.Object.Ref, o)
		}
	}
	w.remove(hook)
	w.expectTree(wl, "ConfigMap conf Healthy Present, ConfigMap none Down Absent, Nothing x Unknown KindNotInstalled")
	w.targets.Forget(wl.Name)
	w.eventually("the tree is forgotten", func() string {
		return complain(!w.sink.forgotten(observe.Tree{Workload: wl.Instance}.Key()), "it is not")
	})
}

// An object between a resource and its pods has the combined health of the pods. ReplicaSets of earlier revisions are left out.
func TestReporter_Tree_CombinesHealthOfDescendants(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	s.say("ConfigMap conf", health.Healthy)
	s.say("Pod one", health.Healthy)
	s.say("Pod two", health.Healthy)
	w.run()
	conf := w.create(configMap("conf"))
	now := w.create(owned(replicaSet("now"), conf))
	w.create(owned(replicaSet("before"), conf))
	w.create(owned(pod("one"), now))
	w.create(owned(pod("two"), now))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectTree(wl, "ConfigMap conf Healthy Present, now > Pod one Healthy, now > Pod two Healthy, conf > ReplicaSet now Healthy")
	s.say("Pod two", health.Down)
	w.reporter.ReassessAll()
	w.expectTree(wl, "ConfigMap conf Unhealthy Present, now > Pod one Healthy, now > Pod two Down, conf > ReplicaSet now Unhealthy")
}

func TestReporter_Trees_SpacedAndOnChangeOnly(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusInterval = time.Second
	w, s := scripted(t, config)
	s.say("ConfigMap conf", health.Healthy)
	w.run()
	w.create(configMap("conf"))
	begin := time.Now()
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectTree(wl, "ConfigMap conf Healthy Present")
	statuses := []health.Status{health.Reconciling, health.Healthy}
	turn := 0
	w.during(3500*time.Millisecond, func() string {
		s.say("ConfigMap conf", statuses[turn%2])
		w.reporter.ReassessAll()
		turn++
		return ""
	})
	s.say("ConfigMap conf", health.Unhealthy)
	w.reporter.ReassessAll()
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

// crashed is the status of a pod whose container app has crashed: it is terminated, waits, and runs again.
func crashed(restarts int, state string) string {
	return fmt.Sprintf(`{"status": {"phase": "Running", "containerStatuses": [{"name": "app", "image": "other", "imageID": "a", "ready": false,
		"restartCount": %d, "state": %s, "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": %q}}}]}}`,
		restarts, state, endedAt(restarts).Format(time.RFC3339))
}

// expectPod waits for the facts of the only Pod in the last tree, and returns the number of trees.
func (w *world) expectPod(wl target.Workload, want string) (trees int) {
	w.Helper()
	w.eventually("the facts "+want, func() string {
		all, _ := w.sink.trees(wl.Instance)
		if trees = len(all); trees == 0 {
			return "no tree was offered"
		}
		got := "none"
		for _, o := range all[trees-1].Objects {
			if o.Pod == nil {
				continue
			}
			got = o.Pod.Node
			for _, c := range o.Pod.Containers {
				got += fmt.Sprintf(" %s %s %s %s restarts %d exit %d %s", c.Name, c.Image, c.State, c.Reason, c.Restarts, c.LastExit.Code, c.LastExit.Reason)
			}
		}
		return complain(got != want, "they are "+got)
	})
	return trees
}

// The health of the Pod stays the same, so each tree is about its facts. A crash causes three trees at most: one for each state of the
// container that lasts longer than the interval between two trees.
func TestReporter_Tree_ReportsPodFactsOnChange(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprintf("listed %t", listed), func(t *testing.T) {
			t.Parallel()
			w, s := scripted(t, quick())
			s.say("ConfigMap conf", health.Healthy)
			s.say("Pod web-1", health.Healthy)
			w.run()
			conf := w.create(configMap("conf"))
			p := w.create(strings.Replace(owned(pod("web-1"), conf), "spec: {", "spec: {nodeName: node-1, ", 1))
			wl := w.track("web", map[bool]string{true: "v1 Pod web-1", false: "v1 ConfigMap conf"}[listed])
			before := w.expectPod(wl, "node-1")
			const crashes = 3
			for n := 1; n <= crashes; n++ {
				for _, step := range []struct{ state, want string }{
					{`{"terminated": {"exitCode": 1, "reason": "Error"}}`, "Terminated Error"},
					{`{"waiting": {"reason": "CrashLoopBackOff"}}`, "Waiting CrashLoopBackOff"},
					{`{"running": {}}`, "Running "},
				} {
					w.patchStatus(p, crashed(n, step.state))
					w.expectPod(wl, fmt.Sprintf("node-1 app example/app:1 %s restarts %d exit 1 Error", step.want, n))
				}
				w.patchStatus(p, fmt.Sprintf(`{"status": {"message": "heartbeat %d"}}`, n))
				w.patchStatus(p, strings.Replace(crashed(n, `{"running": {}}`), `"finishedAt"`, `"message": "bye", "finishedAt"`, 1))
			}
			w.patchStatus(p, crashed(crashes+1, `{"running": {}}`))
			trees := w.expectPod(wl, fmt.Sprintf("node-1 app example/app:1 Running  restarts %d exit 1 Error", crashes+1))
			if want := before + 3*crashes + 1; trees != want {
				t.Errorf("%d trees were offered, want %d: one for each state of the container", trees, want)
			}
		})
	}
}

// lastStatus returns the status that was offered last of an instance.
func (r *recorder) lastStatus(instance target.Instance) observe.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, report := range slices.Backward(r.offered) {
		if s, ok := report.(observe.Status); ok && s.Workload == instance {
			return s
		}
	}
	return observe.Status{}
}

func TestReporter_Status_HasReasonCauseAndSince(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	s.say("ConfigMap conf", health.Unhealthy)
	w.run()
	w.create(configMap("conf"))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectStatus(wl, "Unhealthy")
	if got := w.sink.lastStatus(wl.Instance); got.Reason == "" || got.Cause == "" {
		t.Errorf("status %+v has no reason or no cause", got)
	}
	w.expectTree(wl, "ConfigMap conf Unhealthy Present")
	s.say("ConfigMap conf", health.Down)
	w.reporter.ReassessAll()
	w.eventually("the status has the time of its change", func() string {
		got := w.sink.lastStatus(wl.Instance)
		return complain(got.Status != "Down" || time.Since(got.Since) > time.Minute || got.Since.IsZero(), fmt.Sprintf("it is %+v", got))
	})
	if state, last := w.desiredState(wl.Instance), w.sink.lastStatus(wl.Instance); state.Status.Version() != last.Version() {
		t.Errorf("DesiredState has the status %+v, offered was %+v", state.Status, last)
	}
}

func TestReporter_Reoffer_OffersStatusesTreesAndObjectsAgain(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	s.say("ConfigMap conf", health.Healthy)
	w.sink.reoffer = make(chan struct{})
	w.run()
	w.create(configMap("conf"))
	wl := w.track("web", "v1 ConfigMap conf")
	w.expectStatus(wl, "Healthy")
	w.expectTree(wl, "ConfigMap conf Healthy Present")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.sink.clear()
	w.sink.reoffer <- struct{}{}
	w.expectStatus(wl, "Healthy")
	w.expectTree(wl, "ConfigMap conf Healthy Present")
	w.expectLives(wl.Resources[0].Ref, "[1]")
}

func TestClients_ClusterUID(t *testing.T) {
	t.Parallel()
	clients, err := informers.NewClients(shared.reader)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := clients.ClusterUID(t.Context())
	again, err2 := clients.ClusterUID(t.Context())
	if err != nil || err2 != nil || uid == "" || uid != again {
		t.Errorf("it is %q and %q: %v, %v", uid, again, err, err2)
	}
}
