package reporter

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// script are health rules that return a given assessment for an object's kind and name.
type script struct {
	mu     sync.Mutex
	says   map[string]func(now time.Time) health.Assessment
	judged map[string]int
}

func newScript() *script {
	return &script{says: map[string]func(time.Time) health.Assessment{}, judged: map[string]int{}}
}

func (*script) Covers(schema.GroupKind) bool { return true }

func (s *script) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	s.mu.Lock()
	defer s.mu.Unlock()
	key := kind.Kind + " " + name
	s.judged[key]++
	say, ok := s.says[key]
	if !ok {
		return health.Assessment{}, false
	}
	return say(now), true
}

func (s *script) set(key string, say func(now time.Time) health.Assessment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says[key] = say
}

// say sets an assessment that does not depend on the time.
func (s *script) say(key string, status health.Status) {
	s.set(key, func(time.Time) health.Assessment { return assessment(status) })
}

func (s *script) times(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged[key]
}

func assessment(status health.Status) health.Assessment {
	v := health.Verdict{Status: status}
	if status != health.Healthy {
		v.Reason, v.Message = "Said", "somebody said so"
	}
	return health.Assessment{Verdict: v}
}

// scripted returns a world whose objects are assessed by a script.
func scripted(t *testing.T, config Config) (*world, *script) {
	t.Helper()
	s := newScript()
	config.Rules = s
	w := newIdleWorld(t, shared.reader, config)
	return w, s
}

// counter returns the value of a counter.
func (w *world) counter(name string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	w.Fatalf("there is no metric %s", name)
	return 0
}

func (w *world) getVersion(obj *unstructured.Unstructured) string {
	w.Helper()
	got, err := resourceOf(obj).Get(w.ctx, obj.GetName(), metav1.GetOptions{})
	w.must(err)
	return got.GetResourceVersion()
}

// expectHealth waits for a workload's health, "STATUS REASON: MESSAGE". status is a prefix of it, says are parts.
func (w *world) expectHealth(wl target.Workload, status string, says ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s is %s with %q", wl.Name, status, says), func() string {
		is, reason, message := w.reporter.Health(wl.Name)
		text := is + " " + reason + ": " + message
		for _, part := range says {
			if !strings.Contains(text, part) {
				return "it is " + text
			}
		}
		return complain(!strings.HasPrefix(text, status), "it is "+text)
	})
}

// The cause is the path from the listed resource to the failing pods. Pods, and other failing resources, are counted.
func TestReporter_Health_CauseHasOwnerPath(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	w.run()
	d := w.create(deployment("web"))
	rs := w.create(owned(replicaSet("web-78"), d))
	for _, name := range []string{"web-78-a", "web-78-b", "web-78-c"} {
		s.say("Pod "+name, health.Down)
		w.create(owned(pod(name), rs))
	}
	direct := w.create(owned(pod("direct"), d))
	s.say("Pod direct", health.Healthy)
	s.set("Deployment web", func(time.Time) health.Assessment {
		return health.Assessment{Verdict: health.Verdict{Status: health.Reconciling, Reason: "Waits", Message: "Deployment web has 1 of 4 replicas ready"}}
	})
	wl := w.track("web", "apps/v1 Deployment web", "v1 ConfigMap none", "v1 Pod none", "v1 ConfigMap conf")
	w.create(configMap("conf"))
	w.expectHealth(wl, "Down Absent", "ConfigMap", "does not exist", "; Pod none and 1 other are not Healthy")
	w.create(configMap("none"))
	w.expectHealth(wl, "Down Absent", "Pod", "does not exist", "; Deployment web is not Healthy")
	single := w.create(pod("none"))
	s.say("Pod none", health.Healthy)
	w.expectHealth(wl, "", " Said: 3 pods Said: somebody said so")
	expect := func(resource int, what string, good func(target.ResourceStatus) bool) {
		t.Helper()
		w.eventually(what, func() string { // each is assessed separately
			status := w.statuses(wl)[resource]
			return complain(status.State != target.Present || !good(status), fmt.Sprintf("the resource status is %+v", status))
		})
	}
	expect(0, "1 of 4 pods Healthy, and the cause", func(s target.ResourceStatus) bool {
		return s.Pods == target.Count{Total: 4, Healthy: 1} && s.Reason == "Said" && strings.Contains(s.Cause, "3 pods Said")
	})
	expect(2, "the pod "+single.GetName()+" counted itself, and no cause", func(s target.ResourceStatus) bool {
		return s.Pods == target.Count{Total: 1, Healthy: 1} && s.Cause == ""
	})
	expect(3, "the ConfigMap Healthy, without pods", func(s target.ResourceStatus) bool {
		return s.Health == "Healthy" && s.Pods == target.Count{}
	})
	w.remove(direct)
	w.eventually("the deleted pod is not counted", func() string {
		pods := w.statuses(wl)[0].Pods
		return complain(pods != target.Count{Total: 3}, fmt.Sprint(pods))
	})
}

const mounting = `{"status": {"phase": "Pending",
	"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}],
	"containerStatuses": [{"name": "app", "image": "a", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]}}`

// warning is an Event of type Warning at a time.
func warning(reason string, about *unstructured.Unstructured, at time.Time) string {
	text := strings.Replace(event(reason, about), "type: Normal", "type: Warning", 1)
	return strings.Replace(text, "2026-01-02T03:04:05Z", at.UTC().Format(time.RFC3339), 1)
}

// A Warning counts until it expires.
func TestReporter_Health_WarningCountsUntilItExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	p := w.create(pod("web"))
	w.patchStatus(p, mounting)
	wl := w.track("web", "v1 Pod web")
	w.expectState(wl, 0, target.Present, "")
	ev := w.create(warning("FailedMount", p, time.Now()))
	w.expectHealth(wl, "Down FailedMount: ", "it happened")
	w.remove(ev)
	w.eventually("the expired Warning does not count", func() string {
		_, reason, message := w.reporter.Health(wl.Name)
		return complain(reason == "FailedMount", message)
	})
}

// Many Warnings about an object cause few assessments, and do not make the agent fetch a listed object that the cache keeps
// only in part.
func TestReporter_ManyWarnings_FewAssessments(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusDelay = 500 * time.Millisecond
	w := newWorld(t, shared.reader, config)
	rs := w.create(replicaSet("web"))
	p := w.create(owned(pod("web-1"), rs))
	wl := w.track("web", "apps/v1 ReplicaSet web")
	w.expectLives(wl.Resources[0].Ref, "[1]") // it was fetched
	w.expectLives(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web-1"}, "[1]")
	w.awaitSync()
	fetches, judged, begin := w.counter("threeport_agent_object_fetches_total"), w.counter("threeport_agent_assessments_total"), time.Now()
	const repeats = 300
	for _, about := range []*unstructured.Unstructured{rs, p} {
		ev := w.create(warning("Flood", about, begin))
		for n := range repeats {
			w.patch(ev, fmt.Sprintf(`{"count": %d, "lastTimestamp": %q}`, n+2, begin.Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339)))
		}
	}
	w.eventually("the last repeat is offered", func() string {
		events := w.sink.events("Flood")
		last := begin.Add((repeats - 1) * time.Second).UTC().Format(time.RFC3339)
		return complain(len(events) == 0 || events[len(events)-1].Time.Format(time.RFC3339) != last, "it is not")
	})
	n := w.counter("threeport_agent_assessments_total") - judged
	if most := 2 * (float64(time.Since(begin)/config.StatusDelay) + 2); n > most || n == 0 { // two objects
		t.Errorf("%d repeats cost %v assessments, want some, and %v at most", 2*repeats, n, most)
	}
	if n := w.counter("threeport_agent_object_fetches_total") - fetches; n > 0 {
		t.Errorf("the unchanged ReplicaSet was fetched %v times", n)
	}
}

// An object that many workloads list is read and judged once for each of its versions, and not once for each workload.
func TestReporter_SharedObject_IsJudgedOnce(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, shared.reader, quick())
	rs := w.create(replicaSet("web"))
	var workloads []target.Workload
	for i := range 20 {
		workloads = append(workloads, w.track(fmt.Sprintf("web-%d", i), "apps/v1 ReplicaSet web"))
	}
	w.run()
	ref := workloads[0].Resources[0].Ref
	offered := func(version string) func() string {
		return func() string {
			n := 0
			for _, op := range w.sink.operations(ref) {
				if op.ResourceVersion == version {
					n++
				}
			}
			return complain(n != len(workloads), fmt.Sprintf("it is to %d workloads", n))
		}
	}
	w.eventually("the ReplicaSet is reported to all", offered(rs.GetResourceVersion()))
	w.awaitSync()
	w.eventually("all have a verdict", func() string {
		for _, wl := range workloads {
			if status, _, _ := w.reporter.Health(wl.Name); status == "" {
				return wl.Name + " has none"
			}
		}
		return ""
	})
	fetches, judged := w.counter("threeport_agent_object_fetches_total"), w.counter("threeport_agent_assessments_total")
	w.patch(rs, `{"metadata": {"labels": {"a": "b"}}}`)
	w.eventually("the change is reported to all", offered(w.getVersion(rs)))
	w.awaitSync()
	if n := w.counter("threeport_agent_assessments_total") - judged; n == 0 || n > 3 {
		t.Errorf("a change of an object of %d workloads cost %v assessments, want one, or few if it was queued again", len(workloads), n)
	}
	if n := w.counter("threeport_agent_object_fetches_total") - fetches; n != 1 {
		t.Errorf("it cost %v reads, want one", n)
	}
}

// An assessment that ends by itself is repeated in time, also if the object changes to an earlier end.
func TestReporter_Recheck_InTime(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	until := func(d time.Duration) func(time.Time) health.Assessment {
		var deadline time.Time
		return func(now time.Time) health.Assessment {
			if deadline.IsZero() {
				deadline = now.Add(d)
			}
			if now.Before(deadline) {
				a := assessment(health.Reconciling)
				a.Recheck = deadline
				return a
			}
			return assessment(health.Down)
		}
	}
	s.set("ConfigMap soon", until(time.Second))
	s.set("ConfigMap late", until(time.Hour))
	s.set("ReplicaSet set", until(time.Second))
	w.create(configMap("soon"))
	late := w.create(configMap("late"))
	w.create(replicaSet("set"))
	// Objects that are declared after the first list are fetched, because the cache keeps a part of them only.
	first, second, third := w.track("first", "v1 ConfigMap soon"), w.track("second", "v1 ConfigMap late"), w.track("third", "apps/v1 ReplicaSet set")
	w.run()
	w.expectStatus(first, "Down")
	w.expectStatus(third, "Down")
	w.expectStatus(second, "Reconciling")
	if n := w.counter("threeport_agent_object_fetches_total"); n != 1 {
		t.Errorf("the ReplicaSet was fetched %v times, want once", n)
	}
	s.set("ConfigMap late", until(500*time.Millisecond))
	w.patch(late, `{"data": {"key": "other"}}`)
	w.expectStatus(second, "Down")
	n := s.times("ConfigMap late")
	w.during(300*time.Millisecond, func() string {
		return complain(s.times("ConfigMap late") > n, "it is assessed again without a reason")
	})
}

// An assessment that has always ended does not cause a busy loop.
func TestReporter_RecheckInThePast_NoBusyLoop(t *testing.T) {
	t.Parallel()
	config := quick()
	config.StatusDelay = 200 * time.Millisecond
	w, s := scripted(t, config)
	s.set("ConfigMap hasty", func(now time.Time) health.Assessment {
		a := assessment(health.Reconciling)
		a.Recheck = now.Add(-time.Hour)
		return a
	})
	w.run()
	w.create(configMap("hasty"))
	wl := w.track("web", "v1 ConfigMap hasty")
	w.expectStatus(wl, "Reconciling")
	n, begin := s.times("ConfigMap hasty"), time.Now()
	w.during(time.Second, func() string {
		got := s.times("ConfigMap hasty") - n
		return complain(got > int(time.Since(begin)/config.StatusDelay)+2, "it is assessed in a busy loop")
	})
}

// ReassessAll applies new rules to all objects, and fetches none.
func TestReporter_ReassessAll(t *testing.T) {
	t.Parallel()
	w, s := scripted(t, quick())
	w.run()
	w.create(configMap("conf"))
	rs := w.create(replicaSet("set"))
	w.create(owned(pod("set-1"), rs))
	s.say("ReplicaSet set", health.Healthy)
	s.say("Pod set-1", health.Healthy)
	conf, set := w.track("conf", "v1 ConfigMap conf"), w.track("set", "apps/v1 ReplicaSet set")
	w.expectStatus(conf, "Healthy")
	w.expectStatus(set, "Healthy")
	fetches := w.counter("threeport_agent_object_fetches_total")
	s.say("ConfigMap conf", health.Unhealthy)
	s.say("Pod set-1", health.Down)
	w.reporter.ReassessAll()
	w.expectStatus(conf, "Unhealthy")
	w.eventually("the pod is assessed by the new rule", func() string {
		got := w.sink.status(set.Instance)
		return complain(got == "Healthy", "the status is "+got)
	})
	s.say("Pod set-1", health.Healthy)
	s.say("ReplicaSet set", health.Down)
	w.reporter.ReassessAll()
	w.expectStatus(set, "Down")
	if n := w.counter("threeport_agent_object_fetches_total") - fetches; n > 0 {
		t.Errorf("%v unchanged objects were fetched", n)
	}
}

const slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: NAME, namespace: NS}, addressType: IPv4,
	endpoints: [{addresses: [10.0.0.1], nodeName: a, conditions: {ready: false}}]}`

// The EndpointSlices of a listed Service count for its health, although no workload lists them.
func TestReporter_EndpointSlices_CountForTheirService(t *testing.T) {
	t.Parallel()
	config := quick()
	config.now = func() time.Time { return time.Now().Add(time.Hour) }
	w := newWorld(t, shared.reader, config)
	service := w.create("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: NS}, spec: {ports: [{port: 80}], selector: {app: web}}}")
	conf := w.create(configMap("conf"))
	w.expectStatus(w.track("conf", "v1 ConfigMap "+conf.GetName()), "Healthy")
	if n := w.proxy.watches("/endpointslices"); n > 0 {
		t.Errorf("%d watches of EndpointSlices without a listed Service, want none", n)
	}
	hold := make(chan struct{})
	w.proxy.holdWhile(hold, "/endpointslices")
	before := w.reporter.informers.Sizes()["current informers"]
	wl := w.track("web", "v1 Service web")
	w.eventually("Services are watched before EndpointSlices", func() string {
		return complain(w.reporter.informers.Sizes()["current informers"] == before, "they are not")
	})
	close(hold)
	w.expectStatus(wl, "Healthy") // no controller of the cluster has made an EndpointSlice
	endpoints := w.create(owned(strings.Replace(slice, "NAME", "web-1", 1), service))
	w.create(strings.Replace(slice, "NAME", "other", 1))
	w.expectStatus(wl, "Down")
	w.expectHealth(wl, "Down ", "EndpointSlice web-1")
	other := w.track("other", "discovery.k8s.io/v1 EndpointSlice other") // it was in the cache without its addresses
	w.expectState(other, 0, target.Present, "")
	w.eventually("the whole EndpointSlice is reported", func() string {
		ops := w.sink.operations(other.Resources[0].Ref)
		return complain(len(ops) == 0 || !strings.Contains(fmt.Sprint(ops[0].Body), "10.0.0.1"), fmt.Sprint(ops))
	})
	if pods := w.statuses(wl)[0].Pods; pods != (target.Count{}) {
		t.Errorf("%v pods are counted, want none", pods)
	}
	id, _ := w.targets.ExistingObject(target.Ref{Group: "discovery.k8s.io", Kind: "EndpointSlice", Namespace: w.namespace, Name: "web-1"})
	cached, ok := w.reporter.informers.Object(id, target.Attribution{})
	if !ok {
		t.Fatal("EndpointSlice web-1 is not in the cache")
	}
	if text := fmt.Sprint(cached.Object); strings.Contains(text, "10.0.0.1") {
		t.Errorf("the cache has EndpointSlice web-1 as %s; want no addresses", text)
	}
	_, err := resourceOf(endpoints).Patch(w.ctx, endpoints.GetName(), "application/merge-patch+json",
		[]byte(`{"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]}`), metav1.PatchOptions{})
	w.must(err)
	w.expectStatus(wl, "Healthy")
	w.targets.Forget(wl.Name)
	w.targets.Forget(other.Name)
	w.eventually("the watch of EndpointSlices ends with the last Service", func() string {
		return complain(w.proxy.watches("/endpointslices") > 0, "it is open")
	})
}

// partial are rules that cover one kind.
type partial struct {
	*script
	covers schema.GroupKind
}

func (p partial) Covers(kind schema.GroupKind) bool { return kind == p.covers }

// Rules for pods get derived pods as cached, and listed pods whole. Rules for other kinds get no pods.
func TestReporter_RulesForPods(t *testing.T) {
	t.Parallel()
	for reason, covers := range map[string]bool{"rules for pods": true, "rules for others": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			rules := partial{script: newScript(), covers: schema.GroupKind{Kind: "ConfigMap"}}
			if covers {
				rules.covers = podKind
			}
			config := quick()
			config.Rules = rules
			w := newWorld(t, shared.reader, config)
			rules.say("ConfigMap conf", health.Healthy)
			rules.say("Pod single", health.Down)
			rules.say("Pod derived", health.Unhealthy)
			conf := w.create(configMap("conf"))
			w.create(owned(pod("derived"), conf))
			w.create(pod("single"))
			first, second := w.track("first", "v1 ConfigMap conf"), w.track("second", "v1 Pod single")
			if covers {
				w.expectStatus(first, "Unhealthy")
				w.expectStatus(second, "Down")
				return
			}
			w.expectStatus(first, "Reconciling")
			w.expectStatus(second, "Reconciling")
			if n := rules.times("Pod single") + rules.times("Pod derived"); n > 0 {
				t.Errorf("rules for another kind were called %d times for a pod", n)
			}
		})
	}
}
