package reporter

import (
	"bufio"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// serverWatches returns the number of watches of a resource, by the API server's metrics.
func (w *world) serverWatches(resource string) int {
	w.Helper()
	client, err := kubernetes.NewForConfig(shared.api.Config())
	w.must(err)
	body, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(w.ctx)
	w.must(err)
	line := regexp.MustCompile(`^apiserver_longrunning_requests\{.*resource="` + resource + `",.*verb="WATCH".*\} (\d+)`)
	n := 0
	for scanner := bufio.NewScanner(strings.NewReader(string(body))); scanner.Scan(); {
		if m := line.FindStringSubmatch(scanner.Text()); m != nil {
			count, err := strconv.Atoi(m[1])
			w.must(err)
			n += count
		}
	}
	return n
}

func TestInformers_ManyWorkloads_OneWatchPerResource(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	resources := []string{"events", "pods", "replicasets", "jobs", "deployments", "configmaps"}
	// The watches of earlier tests end when the API server notices that their clients are gone.
	var before map[string]int
	w.eventually("the number of the API server's watches is stable", func() string {
		earlier := before
		before = map[string]int{}
		for _, r := range resources {
			before[r] = w.serverWatches(r)
		}
		w.during(300*time.Millisecond, func() string { return "" })
		return complain(!maps.Equal(earlier, before), fmt.Sprintf("they were %v, and are %v", earlier, before))
	})
	var workloads []target.Workload
	for n := range 25 {
		name := fmt.Sprintf("w%d", n)
		w.create(configMap(name))
		d := w.create(deployment(name))
		rs := w.create(owned(replicaSet(name), d))
		w.create(owned(pod(name), rs))
		workloads = append(workloads, w.track(name, "v1 ConfigMap "+name, "apps/v1 Deployment "+name))
		if n != 0 && n != 24 {
			continue
		}
		for _, wl := range workloads {
			w.expectState(wl, 0, target.Present, "")
			w.expectState(wl, 1, target.Present, "")
			w.expectLives(wl.Resources[0].Ref, "[1]")
		}
		w.expectLives(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: name}, "[1]")
		w.awaitSync()
		for _, r := range resources {
			w.eventually(fmt.Sprintf("the API server has 1 more watch of %s with %d workloads", r, n+1), func() string {
				got := w.serverWatches(r) - before[r]
				return complain(got != 1, fmt.Sprintf("it has %d", got))
			})
		}
		if got := w.gauge(); got != 6 {
			t.Errorf("the metric says %v informers with %d workloads, want 6", got, n+1)
		}
	}
	for _, wl := range workloads[1:] {
		w.targets.Forget(wl.Name)
	}
	w.eventually("the operation of the released ConfigMap is cancelled", func() string {
		if op := w.sink.operations(workloads[1].Resources[0].Ref); !w.sink.isCancelled(op[0].Key()) {
			return "it is not"
		}
		return ""
	})
	w.eventually("one watch of ConfigMaps is left with one workload", func() string {
		got := w.proxy.watches("/configmaps")
		return complain(got != 1, fmt.Sprintf("there are %d", got))
	})
	w.targets.Forget(workloads[0].Name)
	w.eventually("every watch ends with the last workload", func() string {
		if n, gauge := w.proxy.watches(""), w.gauge(); n > 0 || gauge > 0 {
			return fmt.Sprintf("%d are open, and the metric says %v", n, gauge)
		}
		return ""
	})
}

func TestInformers_RepeatedDeclaration_NoRequests(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf", "example.org/v1 Absent none")
	w.expectState(wl, 0, target.Present, "")
	w.expectState(wl, 1, target.KindNotInstalled, "Absent.example.org is not installed")
	w.expectStatus(wl, "Unknown")
	for n := 0; ; n++ {
		w.awaitSync()
		before, cut := len(w.proxy.sent("/configmaps")), w.proxy.cutOff("/configmaps")
		for range 50 {
			if w.targets.Track(wl) {
				t.Fatal("a repeated declaration counted as a change")
			}
		}
		other := w.track(fmt.Sprintf("other-%d", n), "v1 ConfigMap other") // it is visible after the earlier declarations
		w.expectState(other, 0, target.Absent, "")
		got := len(w.proxy.sent("/configmaps")) - before
		if w.proxy.cutOff("/configmaps") > cut {
			continue // the API server ended a watch meanwhile
		}
		if got > 0 {
			t.Errorf("%d requests for ConfigMaps that are watched already, want none", got)
		}
		return
	}
}

func TestInformers_TwoVersionsOfAKind(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	const scaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: NAME, namespace: NS},
		spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`
	hpa := w.create(strings.ReplaceAll(scaler, "NAME", "hpa"))
	one := w.track("one", "autoscaling/v1 HorizontalPodAutoscaler hpa")
	two := w.track("two", "autoscaling/v2 HorizontalPodAutoscaler hpa")
	old := w.track("old", "autoscaling/v2beta2 HorizontalPodAutoscaler hpa")
	w.expectState(one, 0, target.Present, "")
	w.expectState(two, 0, target.Present, "")
	status := w.expectState(old, 0, target.Present, "version v2beta2 is not served; watched as v2")
	if status.Version != "v2" {
		t.Errorf("the version is %s, want v2", status.Version)
	}
	for path, want := range map[string]int{"/v1/horizontalpodautoscalers": 1, "/v2/horizontalpodautoscalers": 1} {
		w.eventually(fmt.Sprintf("%d watches of %s", want, path), func() string {
			got := w.proxy.watches(path)
			return complain(got != want, fmt.Sprintf("there are %d", got))
		})
	}
	// Each incarnation is reported to each workload in the listed version, and its deletion once.
	ref := one.Resources[0].Ref
	for range 5 {
		w.patch(hpa, `{"spec": {"maxReplicas": 4}}`)
		w.remove(hpa)
		hpa = w.create(strings.ReplaceAll(scaler, "NAME", "hpa"))
	}
	versions := map[target.Instance]string{one.Instance: "autoscaling/v1", two.Instance: "autoscaling/v2", old.Instance: "autoscaling/v2"}
	w.eventually("the last operation of three workloads is of the last incarnation", func() string {
		for instance, version := range versions {
			deleted := map[string]int{}
			last := ""
			for _, op := range w.sink.operations(ref) {
				if op.Attribution.Instance != instance {
					continue
				}
				last = string(op.Object.UID)
				if op.Deleted {
					deleted[last]++
					last = ""
					continue
				}
				if got := op.Body.GetObjectKind().GroupVersionKind().GroupVersion().String(); got != version {
					return fmt.Sprintf("%s gets version %s, want %s", instance, got, version)
				}
			}
			if last != string(hpa.GetUID()) {
				return fmt.Sprintf("the last operation of %s is of %q", instance, last)
			}
			for uid, n := range deleted {
				if n != 1 {
					return fmt.Sprintf("%s gets %d deletions of %s", instance, n, uid)
				}
			}
		}
		return ""
	})
	for _, wl := range []target.Workload{one, two, old} {
		w.expectState(wl, 0, target.Present, "")
	}
}

func TestReporter_ObjectListedLater_IsFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("early"))
	w.create(configMap("late"))
	early := w.track("early", "v1 ConfigMap early")
	w.expectState(early, 0, target.Present, "")
	late := w.track("late", "v1 ConfigMap late")
	w.expectLives(late.Resources[0].Ref, "[1]")
	body, err := w.sink.operations(late.Resources[0].Ref)[0].Definition()
	w.must(err)
	if !strings.Contains(string(body), `"data":{"key":"value"}`) || !strings.Contains(string(body), `"kind":"ConfigMap"`) {
		t.Errorf("reported is %s, want the whole ConfigMap", body)
	}
	w.expectStatus(late, "Healthy")
}

// The informers wait for the workloads that exist at the start: their objects are not fetched one by one.
func TestReporter_Start_WaitsForDeclarations(t *testing.T) {
	t.Parallel()
	config, declared := quick(), make(chan struct{})
	config.AllDeclared = declared
	w := newIdleWorld(t, shared.reader, config)
	w.create(configMap("early"))
	w.create(configMap("late"))
	early := w.track("early", "v1 ConfigMap early")
	w.run()
	w.during(500*time.Millisecond, func() string {
		return complain(w.reporter.informers.Sizes()["kinds"] > 0, "kinds are watched")
	})
	late := w.track("late", "v1 ConfigMap late")
	close(declared)
	w.expectLives(early.Resources[0].Ref, "[1]")
	w.expectLives(late.Resources[0].Ref, "[1]")
	if n := w.counter("threeport_agent_object_fetches_total"); n > 0 {
		t.Errorf("%v objects were fetched, want none", n)
	}
	for _, wl := range []target.Workload{early, late} {
		w.eventually("the initial sync may begin", func() string {
			return complain(!w.sink.isRetried(wl.Instance), "that of "+wl.Name+" may not")
		})
	}
}

// The cache keeps no large object. It is fetched when it is reported, and reported whole.
func TestReporter_LargeListedObject_IsFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	large := w.create(strings.Replace(configMap("large"), "value", strings.Repeat("x", 1<<16), 1))
	w.create(configMap("small"))
	wl := w.track("wl", "v1 ConfigMap large", "v1 ConfigMap small")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.expectLives(wl.Resources[1].Ref, "[1]")
	w.expectStatus(wl, "Healthy")
	if n := w.counter("threeport_agent_object_fetches_total"); n != 1 {
		t.Errorf("%v objects were fetched, want the large one", n)
	}
	w.patch(large, `{"data": {"other": "`+strings.Repeat("y", 1<<16)+`"}}`)
	w.eventually("the change is reported whole", func() string {
		operations := w.sink.operations(wl.Resources[0].Ref)
		last := operations[len(operations)-1]
		if last.Body != nil {
			return "its body is kept"
		}
		last, err := last.Load(w.ctx)
		w.must(err)
		body, err := last.Definition()
		w.must(err)
		return complain(strings.Count(string(body), "x") < 1<<16 || strings.Count(string(body), "y") < 1<<16, "it is not")
	})
}

func TestReporter_ListChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("a"))
	w.create(configMap("b"))
	wl := w.track("wl", "v1 ConfigMap a", "apps/v1 Deployment web")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.expectStatus(wl, "Down")
	first := w.sink.operations(wl.Resources[0].Ref)[0].Key()
	wl.Resources = []target.Resource{w.resource("v1 ConfigMap b")}
	w.targets.Track(wl)
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.expectStatus(wl, "Healthy")
	w.eventually("the unlisted object is cancelled, and its kind not watched", func() string {
		if !w.sink.isCancelled(first) || w.proxy.watches("/deployments") > 0 {
			return fmt.Sprintf("cancelled: %v, %d watches", w.sink.isCancelled(first), w.proxy.watches("/deployments"))
		}
		return ""
	})
}
