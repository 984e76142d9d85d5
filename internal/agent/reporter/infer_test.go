package reporter

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// identityOf returns the identity of a Pod.
func identityOf(pod *unstructured.Unstructured) target.Identity {
	return target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName()}, UID: pod.GetUID()}
}

// ghost returns an object that does not exist, for Events about it.
func (w *world) ghost(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := w.parse(manifest)
	obj.SetUID(types.UID(fmt.Sprintf("%s-%d", w.namespace, lastID.Add(1))))
	return obj
}

// Events about objects that were deleted before the watch began are attributed to their inferred owners, in any order of
// arrival.
func TestReporter_InferOwner_EventsAboutDeletedObjects(t *testing.T) {
	for _, tt := range []struct{ reason, order string }{
		{"after a restart", "events workload run"},
		{"declared before the informers have synced", "events run workload"},
		{"declared when they have", "events run keeper workload"},
		{"listed when they have", "events run keeper other-list workload"},
		{"the Events come last", "run keeper workload events"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			w := newIdleWorld(t, shared.reader, quick())
			web := w.create(deployment("web"))
			other := w.create(deployment("other"))
			w.create(owned(replicaSet("web-66c6ccd947"), web))
			w.create(owned(replicaSet("web-77d7ddc958"), other))
			w.create(pod("db-0")) // not the incarnation of the Event
			ghosts := map[string]*unstructured.Unstructured{
				"Survived":  w.ghost(pod("web-66c6ccd947-bh2rs")),
				"Recursive": w.ghost(pod("web-55b5bbc856-bh2rs")),
				"Set":       w.ghost(replicaSet("web-55b5bbc856")),
				"Ordinal":   w.ghost(pod("db-0")),
				"Strange":   w.ghost(pod("web-77d7ddc958-bh2rs")),
				"Nameless":  w.ghost(pod("web-66c6ccd947-aeiou")),
			}
			want := map[string]int{"Survived": 0, "Recursive": 0, "Set": 0, "Ordinal": 1}
			events := map[string]observe.Key{}
			wl := target.Workload{Name: w.namespace + "-web", Instance: target.Instance{Type: target.WorkloadInstance, ID: lastID.Add(1)}}
			for step := range strings.FieldsSeq(tt.order) {
				switch step {
				case "events":
					for reason, about := range ghosts {
						events[reason] = observe.EventKey(w.create(event(reason, about)).GetUID())
					}
				case "run":
					w.run()
				case "keeper":
					keeper := w.track("keeper", "apps/v1 Deployment none", "apps/v1 StatefulSet none")
					w.expectState(keeper, 0, target.Absent, "")
					w.expectState(keeper, 1, target.Absent, "")
					w.eventually("the informers have synced", func() string {
						if !w.reporter.informers.BaseKindsSynced(w.namespace) {
							return "they have not"
						}
						return ""
					})
				case "other-list":
					wl.Resources = []target.Resource{w.resource("v1 ConfigMap conf")}
					w.targets.Track(wl)
					w.expectState(wl, 0, target.Absent, "")
				case "workload":
					wl.Resources = []target.Resource{w.resource("apps/v1 Deployment web"), w.resource("apps/v1 StatefulSet db")}
					w.targets.Track(wl)
				}
			}
			for reason, resource := range want {
				w.expectEvent(reason, wl.Resources[resource])
			}
			if ev := w.sink.events("Survived")[0]; ev.Involved.Name != "web-66c6ccd947-bh2rs" || !ev.Derived {
				t.Errorf("the Event is %+v, want the Pod in it", ev)
			}
			for _, reason := range []string{"Strange", "Nameless"} {
				if got := w.sink.events(reason); len(got) > 0 {
					t.Errorf("an Event of a Pod of no workload is offered: %v", got)
				}
			}
			w.track("last", "v1 ConfigMap none") // else all informers stop
			w.targets.Forget(wl.Name)
			for reason := range want {
				w.eventually("the Event "+reason+" is cancelled with its workload", func() string {
					if !w.sink.isCancelled(events[reason]) {
						return "it is not"
					}
					return ""
				})
			}
		})
	}
}

// No owner is inferred while the agent may not watch Pods: the Pod may exist.
func TestReporter_InferOwner_NotWithoutPermission(t *testing.T) {
	t.Parallel()
	const rule = `[{"apiGroups": ["", "apps", "batch"], "resources": ["events", "replicasets", "jobs", "deployments"], "verbs": ["list", "watch"]}]`
	reader, name := user(t, rule)
	w := newWorld(t, reader, quick())
	rs := w.create(owned(replicaSet("web-66c6ccd947"), w.create(deployment("web"))))
	w.create(event("Guess", w.ghost(pod("web-66c6ccd947-bh2rs"))))
	wl := w.track("wl", "apps/v1 Deployment web")
	w.create(event("Known", rs))
	w.expectEvent("Known", wl.Resources[0])
	w.during(inferAge+time.Second, func() string {
		if got := w.sink.events("Guess"); len(got) > 0 {
			return fmt.Sprintf("an owner was inferred: %v", got)
		}
		return ""
	})
	w.allow(name, readAll)
	w.expectEvent("Guess", wl.Resources[0])
}

// The attribution of an existing owner may depend on the lookup of its own owner.
func TestReporter_InferOwner_AfterLookup(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, shared.reader, quick())
	hold := make(chan struct{})
	w.proxy.holdWhile(hold, "/betweens")
	w.define("NS.example.com", "Between")
	between := w.create(owned("{apiVersion: NS.example.com/v1, kind: Between, metadata: {name: b, namespace: NS}}", w.create(configMap("top"))))
	rs := w.create(owned(replicaSet("web-66c6ccd947"), between))
	w.create(event("Guess", w.ghost(pod("web-66c6ccd947-bh2rs"))))
	wl := w.track("wl", "v1 ConfigMap top")
	w.run()
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.eventually("the owner of the ReplicaSet is looked up", func() string {
		if _, known := w.targets.Object(rs.GetUID()); !known || !w.reporter.informers.BaseKindsSynced(w.namespace) || len(w.proxy.sent("/betweens")) == 0 {
			return "it is not"
		}
		return ""
	})
	w.during(inferAge, func() string { // after that only the lookup queues the Event again
		if got := w.sink.events("Guess"); len(got) > 0 {
			return fmt.Sprintf("the Event was offered: %v", got)
		}
		return ""
	})
	close(hold)
	w.expectEvent("Guess", wl.Resources[0])
}

// An Event may arrive before its object, whose owner references then decide.
func TestReporter_EventBeforeItsObject(t *testing.T) {
	t.Parallel()
	var clock atomic.Pointer[time.Time] // stopped, so that Events do not age
	clock.Store(new(time.Now()))
	config := quick()
	config.now = func() time.Time { return *clock.Load() }
	w := newWorld(t, shared.reader, config)
	wl := w.track("wl", "apps/v1 DaemonSet web", "v1 ConfigMap conf")
	w.expectState(wl, 0, target.Absent, "")
	w.expectState(wl, 1, target.Absent, "")
	w.awaitSync()
	arrive := func(about *unstructured.Unstructured, owners ...target.Identity) {
		w.targets.Upsert(target.Object{Identity: identityOf(about), Owners: owners})
	}
	strange := w.ghost(pod("web-bh2rs"))
	thaw := w.proxy.freeze("/events")
	clock.Store(new(w.create(event("Strange", strange)).GetCreationTimestamp().Time))
	thaw()
	w.eventually("the Event is in the cache", func() string {
		if len(w.reporter.informers.EventsAboutUnknownObjects()) == 0 {
			return "it has not"
		}
		return ""
	})
	w.during(100*time.Millisecond, func() string { // an informer may lag that much
		if got := w.sink.events("Strange"); len(got) > 0 {
			return fmt.Sprintf("the Event was offered: %v", got)
		}
		return ""
	})
	arrive(strange)
	clock.Store(new(time.Now().Add(time.Hour)))
	changed := w.ghost(pod("web-zzzzz"))
	key := observe.EventKey(w.create(event("Changed", changed)).GetUID())
	w.expectEvent("Changed", wl.Resources[0])
	arrive(changed, target.Identity{Ref: wl.Resources[1].Ref, UID: "conf"})
	w.eventually("the Event belongs to the ConfigMap, under the same key", func() string {
		events := w.sink.events("Changed")
		if last := events[len(events)-1]; len(events) != 2 || last.ResourceID != wl.Resources[1].ID || last.Key() != key || events[0].Key() != key {
			return fmt.Sprintf("offered is %v", events)
		}
		return ""
	})
	if got := w.sink.events("Strange"); len(got) > 0 {
		t.Errorf("the Event of a Pod of no workload was offered before the Pod was known: %v", got)
	}
}
