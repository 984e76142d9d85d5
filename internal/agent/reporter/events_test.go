package reporter

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Expired Events are forgotten, also if they expired while Events were not watched. Others are not.
func TestReporter_ExpiredEvents_AreForgotten(t *testing.T) {
	t.Parallel()
	reader, name := user(t, readAll)
	w := newWorld(t, reader, quick())
	conf := w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	events := map[string]observe.Key{}
	for _, reason := range []string{"Watched", "Unwatched", "Stays"} {
		events[reason] = observe.EventKey(w.create(event(reason, conf)).GetUID())
		w.expectEvent(reason, wl.Resources[0])
	}
	expire := func(reason string) {
		t.Helper()
		w.remove(w.parse(event(reason, conf)))
	}
	forgotten := func(reason string) {
		t.Helper()
		w.eventually("the Event "+reason+" is forgotten", func() string {
			w.reporter.prune(time.Now())
			if !w.sink.forgotten(events[reason]) {
				return "it is not"
			}
			return ""
		})
	}
	expire("Watched")
	forgotten("Watched")
	w.revoke(name)
	w.expectState(wl, 0, target.Forbidden, "")
	expire("Unwatched")
	w.allow(name, readAll)
	forgotten("Unwatched")
	if w.sink.forgotten(events["Stays"]) {
		t.Error("an existing Event is forgotten, and would make a second row")
	}
}

// Events about unknown objects are forgotten when they belong to no workload, and when they expire while no informer watches them.
func TestReporter_EventsAboutUnknownObjects_AreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	expectSize := func(want int) {
		t.Helper()
		w.eventually("the Events about unknown objects are as many as expected", func() string {
			w.reporter.prune(time.Now())
			sizes := w.reporter.events.aboutUnknown.sizes()
			return complain(sizes["Events about unknown objects"] != want || sizes["instances with Events about unknown objects"] != want,
				fmt.Sprintf("there are %v, want %d", sizes, want))
		})
	}
	gone := w.parse(configMap("gone"))
	gone.SetUID("5c4d3e2f-4e5f-6a7b-8c9d-000000000001")
	wl := w.track("wl", "v1 ConfigMap gone")
	w.create(event("Lost", gone))
	w.expectEvent("Lost", wl.Resources[0])
	expectSize(1)
	w.reporter.events.aboutUnknown.set("expired", types.NamespacedName{Name: "expired"}, []observe.Event{{Workload: wl.Instance}})
	handler{w.reporter}.EventsListed()
	expectSize(1)
	w.targets.Forget(wl.Name)
	expectSize(0)
}

// The cache has the beginning of a long message. The report has all of it, also if the Event exists before its workload.
func TestReporter_LongEvents_AreReportedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	conf := w.create(configMap("conf"))
	long := func(reason string) string {
		return strings.Replace(event(reason, conf), "it happened", strings.Repeat(reason+" happened. ", 200), 1)
	}
	w.create(long("Earlier"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectEvent("Earlier", wl.Resources[0])
	w.create(long("Later"))
	for _, reason := range []string{"Earlier", "Later"} {
		w.expectEvent(reason, wl.Resources[0])
		want := strings.TrimSpace(strings.Repeat(reason+" happened. ", 200))
		if got := w.sink.events(reason)[0].Message; got != want {
			t.Errorf("the message of %s has %d bytes, want %d", reason, len(got), len(want))
		}
	}
}

// An Event about an object of another namespace, or with the UID of another object, is neither reported nor the cause of a
// verdict. Its creator chooses the UID, and the API server compares no namespaces if the Event has an eventTime.
func TestReporter_EventsOfOtherNamespaces_AreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	conf, p := w.create(configMap("conf")), w.create(pod("web"))
	wl := w.track("wl", "v1 ConfigMap conf", "v1 Pod web")
	w.expectStatus(wl, "Reconciling")
	elsewhere := w.namespace + "-evil"
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + elsewhere + "}}")

	forged := map[string]string{
		"ForgedFromOutside": fmt.Sprintf("{apiVersion: v1, kind: Pod, namespace: %s, name: web, uid: %q}", w.namespace, p.GetUID()),
		"ForgedByUID":       fmt.Sprintf("{apiVersion: v1, kind: Pod, namespace: %s, name: web, uid: %q}", elsewhere, p.GetUID()),
		"ForgedByName":      fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, namespace: %s, name: conf}", w.namespace),
		"ForgedUnknown":     fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, namespace: %s, name: conf, uid: none}", w.namespace),
	}
	keys := map[string]observe.Key{}
	for reason, regarding := range forged {
		keys[reason] = observe.EventKey(w.create(fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: %s, namespace: %s}
eventTime: "2036-01-02T03:04:05.000001Z"
reportingController: example.com/attacker
reportingInstance: attacker-0
action: Forging
type: Warning
reason: %s
note: words of another user
regarding: %s
`, strings.ToLower(reason), elsewhere, reason, regarding)).GetUID())
	}
	w.create(event("Honest", conf))
	w.expectEvent("Honest", wl.Resources[0])
	w.patchStatus(p, `{"status": {"phase": "Failed", "reason": "Evicted"}}`)
	w.expectStatus(wl, "Down")
	for reason, key := range keys {
		w.eventually("the Event "+reason+" was considered", func() string { return complain(!w.sink.isCancelled(key), "it was not") })
		if len(w.sink.events(reason)) > 0 {
			t.Errorf("the Event %s is reported", reason)
		}
	}
	if _, _, message := w.reporter.Health(wl.Name); strings.Contains(message, "words of another user") {
		t.Errorf("the verdict quotes a forged Event: %s", message)
	}
}

// Filters decide about Events in their order. Health counts the Warnings that are dropped.
func TestReporter_EventFilters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "filters.yaml")
	if err := os.WriteFile(path, []byte(`
filters:
- {name: noise, if: event.reason == "Noise", action: drop}
- {name: kubelet, if: event.component == "kubelet", action: drop}
- {name: some, if: event.reason.startsWith("Some"), action: limit, perMinute: 2}
- {name: long, if: event.reason == "Long", action: shorten, bytes: 100}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	config := quick()
	var err error
	if config.Filters, err = filter.Open(path, filter.NewMetrics(prometheus.NewRegistry()), logr.Discard()); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, shared.reader, config)
	conf := w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.create(event("Noise", conf))
	w.create(event("Kubelet", conf) + "source: {component: kubelet}")
	long := func(reason string) string {
		return strings.Replace(event(reason, conf), "it happened", strings.Repeat(reason+" happened. ", 200), 1)
	}
	for i := range 5 {
		w.create(long(fmt.Sprint("Some", i)))
	}
	w.create(long("Long"))
	w.create(event("Last", conf))
	w.expectEvent("Last", wl.Resources[0])
	w.expectEvent("Long", wl.Resources[0])
	w.eventually("all Events are decided about", func() string {
		if dropped := w.sink.droppedBy(); !maps.Equal(dropped, map[string]int{"noise": 1, "kubelet": 1, "some": 3}) {
			return fmt.Sprintf("dropped are %v", dropped)
		}
		return ""
	})
	if message := w.sink.events("Long")[0].Message; len(message) > 100 || !strings.HasPrefix(message, "Long happened. Long") {
		t.Errorf("the long message is %q, want its first 100 bytes", message)
	}
	if events := w.sink.events("Noise"); len(events) > 0 {
		t.Errorf("%v is offered", events)
	}
	some := 0
	for i := range 5 {
		some += len(w.sink.events(fmt.Sprint("Some", i)))
	}
	if some != 2 {
		t.Errorf("%d Events of 5 are offered, want 2", some)
	}
	w.eventually("the desired state is without the dropped Event", func() string {
		desired, ok, err := w.reporter.DesiredState(t.Context(), wl.Instance, time.Time{})
		has := func(reason string) bool {
			return slices.ContainsFunc(desired.Events, func(ev observe.Event) bool { return ev.Reason == reason })
		}
		if err != nil || !ok || has("Noise") || !has("Last") {
			return fmt.Sprintf("it has the Events %v, %t, %v", desired.Events, ok, err)
		}
		return ""
	})
}

// The annotation of an object drops its Events and those of the objects that it owns, and others when it is gone.
func TestReporter_EventsAnnotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	owner := w.create(annotated(configMap("owner"), "drop"))
	child := w.create(owned(configMap("child"), owner))
	other := w.create(annotated(configMap("other"), "report"))
	wl := w.track("wl", "v1 ConfigMap owner", "v1 ConfigMap other")
	w.create(event("OfOwner", owner))
	w.create(event("OfChild", child))
	w.create(event("OfOther", other))
	w.expectEvent("OfOther", wl.Resources[1])
	w.eventually("two Events are dropped", func() string {
		if dropped := w.sink.droppedBy(); !maps.Equal(dropped, map[string]int{"annotation control-plane.threeport.io/events": 2}) {
			return fmt.Sprintf("dropped are %v", dropped)
		}
		return ""
	})
	w.patch(owner, `{"metadata":{"annotations":null}}`)
	w.eventually("the registry has the change", func() string {
		if known, ok := w.reporter.targets.Object(owner.GetUID()); !ok || known.DropsEvents {
			return "it has not"
		}
		return ""
	})
	w.create(event("Later", child))
	w.expectEvent("Later", wl.Resources[0])
	if events := append(w.sink.events("OfOwner"), w.sink.events("OfChild")...); len(events) > 0 {
		t.Errorf("%v are offered", events)
	}
}

// The annotation of an owner counts as well if its kind syncs after the Event arrived.
func TestReporter_EventsAnnotation_KindOfOwnerSyncsLater(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, shared.reader, quick())
	hold := make(chan struct{})
	w.proxy.holdWhile(hold, "/configmaps")
	owner := w.create(annotated(configMap("owner"), "drop"))
	w.create(event("OfChild", w.create(owned(pod("child"), owner))))
	w.create(event("OfOther", w.create(pod("other"))))
	wl := w.track("wl", "v1 ConfigMap owner", "v1 Pod other")
	w.run()
	w.expectEvent("OfOther", wl.Resources[1])
	close(hold)
	w.eventually("the Event of the child is dropped", func() string {
		if dropped := w.sink.droppedBy(); len(dropped) != 1 {
			return fmt.Sprintf("dropped are %v", dropped)
		}
		return ""
	})
	if events := w.sink.events("OfChild"); len(events) > 0 {
		t.Errorf("%v are offered", events)
	}
}
