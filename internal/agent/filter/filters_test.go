package filter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/reload"
)

func parse(t *testing.T, text string) *Filters {
	t.Helper()
	filters, err := Parse(reload.File{Name: "f.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return filters
}

func TestFilters_Decide_FirstMatch(t *testing.T) {
	t.Parallel()
	filters := parse(t, `
filters:
- {name: warnings, if: event.type == "Warning" && event.namespace == "shop", action: report}
- {name: pulls, if: 'event.reason in ["Pulled", "Pulling"]', action: drop}
- {name: of-object, if: event.object.kind == "Pod" && event.object.apiVersion == "v1" && event.object.name.startsWith("web-") && event.object.namespace == "shop", action: limit, perMinute: 3}
- {name: kubelet, if: 'event.component.matches("(?i)^kubelet$")', action: shorten, bytes: 20}
- {name: text, if: 'event.message.matches("^Back-off")', action: drop}
`)
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1"}
	namespace := metav1.ObjectMeta{Namespace: "shop"}
	for _, tt := range []struct {
		event  corev1.Event
		filter string
		action Action
	}{
		{corev1.Event{ObjectMeta: namespace, Type: "Warning", Reason: "Pulled"}, "warnings", Report},
		{corev1.Event{ObjectMeta: namespace, Type: "Normal", Reason: "Pulled", InvolvedObject: pod}, "pulls", Drop},
		{corev1.Event{Type: "Warning", Reason: "Pulling"}, "pulls", Drop},
		{corev1.Event{Reason: "Created", InvolvedObject: pod}, "of-object", Limit},
		{corev1.Event{Source: corev1.EventSource{Component: "kubelet"}}, "kubelet", Shorten},
		{corev1.Event{ReportingController: "Kubelet"}, "kubelet", Shorten},
		{corev1.Event{Message: "Back-off restarting"}, "text", Drop},
		{corev1.Event{Message: "no Back-off"}, "", Report},
	} {
		got, err := filters.Decide(&tt.event)
		if err != nil || got.Filter != tt.filter || got.Action != tt.action {
			t.Errorf("%s %s %q: got %+v, %v, want %s by %q", tt.event.Type, tt.event.Reason, tt.event.Message, got, err, tt.action, tt.filter)
		}
	}
}

func TestFilters_DecideObject_FirstMatch(t *testing.T) {
	t.Parallel()
	filters := parse(t, `
filters:
- {name: events, if: 'true', action: drop}
- {name: failed-jobs, of: objects, if: 'object.kind == "Job" && object.group == "batch" && object.health != "Healthy"', action: report}
- {name: jobs, of: objects, if: 'object.kind == "Job" && object.namespace == "shop"', action: drop}
- {name: causes, of: objects, if: 'object.reason == "Error" && object.name.startsWith("web-")', action: shorten, bytes: 20}
`)
	if n := filters.Len(); n != 4 {
		t.Errorf("there are %d filters, want 4", n)
	}
	for _, tt := range []struct {
		object Object
		filter string
		action Action
	}{
		{Object{Group: "batch", Kind: "Job", Namespace: "shop", Health: "Down"}, "failed-jobs", Report},
		{Object{Group: "batch", Kind: "Job", Namespace: "shop", Health: "Healthy"}, "jobs", Drop},
		{Object{Group: "batch", Kind: "Job", Namespace: "other", Health: "Healthy"}, "", Report},
		{Object{Kind: "Pod", Name: "web-1", Reason: "Error"}, "causes", Shorten},
	} {
		got, err := filters.DecideObject(tt.object)
		if err != nil || got.Filter != tt.filter || got.Action != tt.action {
			t.Errorf("%+v: got %+v, %v, want %s by %q", tt.object, got, err, tt.action, tt.filter)
		}
	}
}

// An expression that costs too much does not match, and later filters decide.
func TestFilters_Decide_TooExpensive(t *testing.T) {
	t.Parallel()
	filters := parse(t, `
filters:
- {name: slow, if: '[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, event.message.contains("x") == false)))', action: drop}
- {name: rest, if: 'true', action: limit, perMinute: 1}
`)
	got, err := filters.Decide(&corev1.Event{Message: strings.Repeat("a", 100_000)})
	if err == nil || !strings.Contains(err.Error(), `filter "slow"`) || got.Filter != "rest" {
		t.Errorf("got %+v, %v, want the decision of the second filter and an error about the first", got, err)
	}
}

func TestLive_Reloaded_KeepsLastValidFilters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "filters.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("filters: [{name: a, if: 'true', action: drop}]")
	registry := prometheus.NewPedanticRegistry()
	metrics := NewMetrics(registry)
	live, err := Open(path, metrics, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	go live.Run(t.Context(), func() {})
	await := func(condition string, met func() bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); !met(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not within 5 min", condition)
			}
		}
	}
	dropped := func() bool { return live.Decide(&corev1.Event{}).Action == Drop }
	if !dropped() {
		t.Error("the first filters are not in use")
	}
	write("filters: [{name: a}]")
	await("the files are rejected", func() bool { return testutil.ToFloat64(metrics.Rejected) == 1 })
	if !dropped() {
		t.Error("an invalid file replaced the filters")
	}
	write("filters: []")
	await("the filter is gone", func() bool { return !dropped() })
	if n := testutil.ToFloat64(metrics.Rejected); n != 0 {
		t.Errorf("failing is %v after a valid file", n)
	}
}

func TestRates_Allow_PerWorkloadAndFilter(t *testing.T) {
	t.Parallel()
	var r rates
	shop, other := target.Instance{Type: target.WorkloadInstance, ID: 1}, target.Instance{Type: target.WorkloadInstance, ID: 2}
	now := time.Now()
	allowed := func(of rateOf, tries int) (n int) {
		for range tries {
			if r.allow(of, now) {
				n++
			}
		}
		return n
	}
	if n := allowed(rateOf{"a", 30, shop}, 100); n != 30 {
		t.Errorf("%d of 100 at once are allowed, want 30", n)
	}
	if n := allowed(rateOf{"a", 30, other}, 100) + allowed(rateOf{"b", 30, shop}, 100); n != 60 {
		t.Errorf("%d of another workload and another filter are allowed, want 60", n)
	}
	now = now.Add(20 * time.Second)
	if n := allowed(rateOf{"a", 30, shop}, 100); n != 10 {
		t.Errorf("%d are allowed after 20 s, want 10", n)
	}
	now = now.Add(sweepInterval + time.Second)
	if !r.allow(rateOf{"c", 1, shop}, now) || len(r.limiters) != 1 {
		t.Errorf("%d limiters are kept, want the one that was used", len(r.limiters))
	}
}

func BenchmarkFilters_Decide(b *testing.B) {
	filters, err := Parse(reload.File{Data: []byte(`
filters:
- {name: pulls, if: 'event.reason in ["Pulled", "Pulling"]', action: drop}
- {name: probes, if: 'event.reason == "Unhealthy" && event.object.kind == "Pod" && event.namespace.startsWith("dev-")', action: drop}
`)})
	if err != nil {
		b.Fatal(err)
	}
	ev := &corev1.Event{Type: "Normal", Reason: "Created"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := filters.Decide(ev); err != nil {
			b.Fatal(err)
		}
	}
}
