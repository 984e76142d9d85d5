package informers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// inventory returns an instance's, which has to be there.
func (w *world) inventory(instance target.Instance) observe.DesiredState {
	w.Helper()
	var out observe.DesiredState
	w.eventually("the inventory of "+instance.String(), func() string {
		var ok bool
		var err error
		if out, ok, err = w.watcher.DesiredState(w.ctx, instance); err != nil || !ok {
			return fmt.Sprintf("%v, %v", ok, err)
		}
		return ""
	})
	return out
}

// describe tells of an inventory in words: names, reasons of Events, and the status.
func describe(in observe.DesiredState) string {
	var operations, absent, events []string
	for _, op := range in.Operations {
		operations = append(operations, fmt.Sprintf("%s/%d", op.Object.Name, op.Attribution.Resource.ID))
	}
	for _, claim := range in.Absent {
		absent = append(absent, claim.Resource.Name)
	}
	for _, ev := range in.Events {
		events = append(events, ev.Reason)
	}
	slices.Sort(operations)
	slices.Sort(absent)
	slices.Sort(events)
	return fmt.Sprintf("%v absent %v events %v %s", operations, absent, events, in.Status.Status)
}

// latest returns the last reports that were offered of an instance, by key, without those of derived objects.
func (r *recorder) latest(instance target.Instance) map[observe.Key]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[observe.Key]string{}
	for _, report := range r.offered {
		op, isOperation := report.(observe.Operation)
		switch {
		case report.Instance() != instance:
			delete(out, report.Key()) // an Event that went elsewhere
		case isOperation && op.Deleted:
			delete(out, report.Key())
		case !isOperation || op.Attribution.Listed:
			out[report.Key()] = report.Version()
		}
	}
	return out
}

// expectAsOffered waits until an inventory has what was offered last, in the same versions, and no more.
func (w *world) expectAsOffered(instance target.Instance) {
	w.Helper()
	w.eventually("the inventory to have what was offered", func() string {
		in := w.inventory(instance)
		got := map[observe.Key]string{in.Status.Key(): in.Status.Version()}
		for _, op := range in.Operations {
			got[op.Key()] = op.Version()
			if body, err := op.Definition(); err != nil || !strings.Contains(string(body), `"metadata"`) {
				return fmt.Sprintf("%s has no body: %s %v", op, body, err)
			}
		}
		for _, ev := range in.Events {
			got[ev.Key()] = ev.Version()
		}
		if want := w.sink.latest(instance); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("it has\n%v\noffered was\n%v", got, want)
		}
		return ""
	})
}

func TestInventoryHasWhatWasOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	first := w.track("first", "v1 ConfigMap shared")
	w.expectState(first, 0, target.Absent, "")
	w.create(configMap("stub")) // cached before it is listed
	w.create(configMap("shared"))
	d := w.create(deployment("web"))
	rs := w.create(owned(replicaSet("web"), d))
	p := w.create(owned(pod("web"), rs))
	bare := w.create(pod("bare"))
	web := w.track("web", "apps/v1 Deployment web", "v1 ConfigMap stub", "v1 ConfigMap none", "example.org/v1 Kind never",
		"v1 Pod bare", "v1 ConfigMap shared")
	part := target.Workload{Name: web.Name + "-more", Instance: web.Instance, Resources: []target.Resource{
		w.resource("v1 ConfigMap more"),
		web.Resources[1], // also listed by the other part: one row
	}}
	w.targets.Track(part)
	w.create(configMap("more"))
	label := fmt.Sprintf(`{"metadata": {"labels": {"control-plane.threeport.io/workload-instance": "%d"}}}`, web.Instance.ID)
	labelled := w.create(pod("labelled"))
	w.patch(labelled, label)
	for reason, about := range map[string]string{"OfDeployment": deployment("web"), "OfNone": configMap("none")} {
		obj := w.parse(about)
		if reason == "OfDeployment" {
			obj = d
		}
		w.create(event(reason, obj))
	}
	w.create(event("OfPod", p))
	w.create(event("OfLabelled", labelled))
	w.create(event("OfBare", bare))
	w.create(event("OfUnseen", w.ghost(pod("web-66c6ccd947-bh2rs"))))
	w.create(event("OfShared", w.parse(configMap("shared")))) // goes to the first
	w.create(event("OfNobody", w.parse(configMap("nobody"))))
	id := func(i int) int64 { return web.Resources[i].ID }
	want := fmt.Sprintf("%v absent [never none] events [OfBare OfDeployment OfLabelled OfNone OfPod OfUnseen] Down",
		slices.Sorted(slices.Values([]string{
			fmt.Sprintf("web/%d", id(0)), fmt.Sprintf("stub/%d", id(1)), fmt.Sprintf("bare/%d", id(4)),
			fmt.Sprintf("shared/%d", id(5)), fmt.Sprintf("more/%d", part.Resources[0].ID),
		})))
	expect := func(instance target.Instance, want string) {
		t.Helper()
		w.eventually("an inventory of "+want, func() string {
			if got := describe(w.inventory(instance)); got != want {
				return "it is " + got
			}
			return ""
		})
		w.expectAsOffered(instance)
	}
	expect(web.Instance, want)
	expect(first.Instance, fmt.Sprintf("[shared/%d] absent [] events [OfShared] Healthy", first.Resources[0].ID))

	// The first gives the shared object up, and its Event goes to the other; a Pod that is gone keeps its Events.
	w.targets.Forget(first.Name)
	w.remove(p)
	w.remove(bare)
	want = strings.NewReplacer("OfPod", "OfPod OfShared", fmt.Sprintf("bare/%d ", id(4)), "", "[never", "[bare never").Replace(want)
	expect(web.Instance, want)
	if _, ok, err := w.watcher.DesiredState(w.ctx, first.Instance); ok || err != nil {
		t.Errorf("the inventory of an instance that is not declared is %v, %v, expected none", ok, err)
	}
	if got := w.watcher.Instances(); !slices.Equal(got, []target.Instance{web.Instance}) {
		t.Errorf("declared are %v, expected %v", got, web.Instance)
	}
}

// What has not been seen for the first time is waited for, in the listed kinds and in those that controllers make.
func TestInventoryWaitsForTheFirstAnswer(t *testing.T) {
	for _, path := range []string{"/configmaps", "/api/v1/events", "/api/v1/pods", "/replicasets", "/jobs"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newIdleWorld(t, shared.reader, quick())
			hold := make(chan struct{})
			w.proxy.holdWhile(hold, path)
			w.create(configMap("conf"))
			wl := w.track("wl", "v1 ConfigMap conf")
			expectNone := func() {
				t.Helper()
				if in, ok, err := w.watcher.DesiredState(w.ctx, wl.Instance); ok || err != nil {
					t.Errorf("the inventory is %s, %v, %v, expected none yet", describe(in), ok, err)
				}
			}
			expectNone()
			w.run()
			w.eventually("the list to be asked for, and the others to be there", func() string {
				if n := w.gauge(); len(w.proxy.sent(path)) == 0 || n != 5 {
					return fmt.Sprintf("%v informers", n)
				}
				return ""
			})
			w.during(100*time.Millisecond, func() string {
				expectNone()
				return ""
			})
			close(hold)
			if got, want := describe(w.inventory(wl.Instance)), fmt.Sprintf("[conf/%d]", wl.Resources[0].ID); !strings.HasPrefix(got, want) {
				t.Errorf("the inventory is %s, expected %s", got, want)
			}
		})
	}
}

// What cannot be seen is neither there nor absent, and holds nothing else up.
func TestInventoryOfWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	reader, _ := user(t, `[{apiGroups: ["", apps, batch], resources: [pods, configmaps, jobs], verbs: [list, watch]}]`)
	w := newWorld(t, reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf", "apps/v1 Deployment web", "v1 Secret none", "v1 ConfigMap none")
	w.expectState(wl, 1, target.Forbidden, "")
	w.expectState(wl, 2, target.Forbidden, "")
	// What it may see, it may see as soon as the API server knows its role.
	want := fmt.Sprintf("[conf/%d] absent [none] events []", wl.Resources[0].ID)
	w.eventually("an inventory of "+want, func() string {
		got := describe(w.inventory(wl.Instance))
		return complain(!strings.HasPrefix(got, want), "it is "+got)
	})
	other := w.track("other", "v1 ConfigMap conf") // cached as a whole by now; the Pod is not
	p := w.create(pod("web"))
	pods := w.track("pods", "v1 Pod web")
	w.expectLives(pods.Resources[0].Ref, "[1]")
	w.proxy.failWith(func(r *http.Request) int {
		if strings.Contains(r.URL.RawQuery, "fieldSelector") {
			return 500
		}
		return 0
	})
	w.inventory(other.Instance)
	w.inventory(pods.Instance) // it was read, and has not changed
	w.patch(p, `{"metadata": {"annotations": {"some": "change"}}}`)
	w.eventually("the error of reading an object of an inventory that has changed", func() string {
		_, ok, err := w.watcher.DesiredState(w.ctx, pods.Instance)
		return complain(ok || err == nil, fmt.Sprintf("it is %v, %v", ok, err))
	})
}

// BenchmarkInventory takes the inventories of 1,000 workloads that have 60 Events each, once.
func BenchmarkInventory(b *testing.B) {
	const workloads, pods, events = 1000, 6, 10
	clients, err := NewClients(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		b.Fatal(err)
	}
	targets := target.NewRegistry()
	w := New(DefaultConfig(), clients, targets, &recorder{}, nil, NewMetrics(prometheus.NewRegistry()), logr.Discard(), func(string) {})
	b.Cleanup(w.shutDown)
	present := map[string]scopeState{"": {state: target.Present}}
	daemonSets := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	for _, gvk := range append(slices.Clone(baseKinds), daemonSets) {
		k := newKind(w, gvk, func() {})
		k.state = kindState{gvr: gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), scopes: present}
		w.kinds[gvk] = k
		i := &informer{id: informerID{k.state.gvr, ""}, gvk: gvk, synced: true}
		i.shared = w.newSharedInformer(i)
		w.pool.in[i.id] = i
	}
	store := func(gvk string, obj any) {
		for id, i := range w.pool.in {
			if id.gvr.Resource == gvk {
				_ = i.shared.GetIndexer().Add(obj)
			}
		}
	}
	var instances []target.Instance
	for n := range workloads {
		instance := target.Instance{Type: target.WorkloadInstance, ID: int64(n + 1)}
		instances = append(instances, instance)
		owner := target.Identity{Ref: target.Ref{Group: "apps", Kind: "DaemonSet", Namespace: "ns", Name: fmt.Sprintf("web-%d", n)}, UID: types.UID(fmt.Sprintf("d%d", n))}
		targets.Track(target.Workload{Name: owner.Name, Instance: instance, Resources: []target.Resource{{Ref: owner.Ref, Version: "v1", ID: int64(n + 1)}}})
		targets.Upsert(target.Object{Identity: owner})
		body := parse("{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: ns, name: " + owner.Name + ", uid: " + string(owner.UID) + "}}")
		store("daemonsets", body)
		for p := range pods {
			pod := target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: fmt.Sprintf("%s-%d", owner.Name, p)}, UID: types.UID(fmt.Sprintf("p%d-%d", n, p))}
			targets.Upsert(target.Object{Identity: pod, Owners: []target.Identity{owner}})
			for e := range events {
				ev := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s.%d", pod.Name, e), UID: types.UID(fmt.Sprintf("e-%s-%d", pod.UID, e))}}
				ev.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: pod.Name, UID: pod.UID}
				store("events", ev)
				w.told.add(ev.UID, types.NamespacedName{Namespace: "ns", Name: ev.Name}, instance)
			}
		}
	}
	for b.Loop() {
		for _, instance := range instances {
			in, ok, err := w.DesiredState(b.Context(), instance)
			if err != nil || !ok || len(in.Events) != pods*events || len(in.Operations) != 1 {
				b.Fatal(describe(in), ok, err)
			}
		}
	}
}
