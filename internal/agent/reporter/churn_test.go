package reporter

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The size of TestReporter_Churn_LeavesNothingBehind. `make test-faults` runs it with 1,000 workloads of 50 kinds.
var (
	churnWorkloads = flag.Int("churn.workloads", 240, "`number` of workloads that come and go")
	churnKinds     = flag.Int("churn.kinds", 12, "`number` of kinds that come and go")
)

// heapSlack is how much the heap may grow during the churn: discovery, the metrics and the HTTP client keep some
// memory.
const heapSlack = 3 << 20

// After many workloads and kinds have come and gone, no watch, goroutine or memory is left of them.
func TestReporter_Churn_LeavesNothingBehind(t *testing.T) {
	store := newMemoryStore()
	w := newIdleWorld(t, shared.reader, quick())
	w.again(store)
	w.run()
	w.create(configMap("kept"))
	keeper := w.track("keeper", "v1 ConfigMap kept", "apps/v1 Deployment none")
	w.expectLives(keeper.Resources[0].Ref, "[1]")
	w.expectState(keeper, 1, target.Absent, "")
	w.awaitSync()
	w.churn(20, 2) // allocates what is allocated once
	w.rested()
	before := w.holdings(store)
	begin := time.Now()
	w.churn(*churnWorkloads, *churnKinds)
	took := time.Since(begin)
	var after holdings
	w.eventually("all sizes are as before", func() string {
		w.rested()
		after = w.holdings(store)
		for what, n := range after.counts {
			if n > before.counts[what] {
				return fmt.Sprintf("%d %s, there were %d before", n, what, before.counts[what])
			}
		}
		if after.heap > before.heap+heapSlack {
			return fmt.Sprintf("the heap is %d KiB, before it was %d", after.heap>>10, before.heap>>10)
		}
		return ""
	})
	t.Logf("%d workloads and %d kinds came and went in %s; the heap was %d KiB before and is %d after; %v",
		*churnWorkloads, *churnKinds, took.Round(time.Second), before.heap>>10, after.heap>>10, after.counts)
	w.expectNews("kept")
}

// churn declares workloads that list an object of a kind each, with a Pod and an Event, and removes all of them.
func (w *world) churn(workloads, kinds int) {
	w.Helper()
	group := uniqueName(w.T) + ".example.com"
	definitions := make([]*unstructured.Unstructured, kinds)
	w.atOnce(kinds, func(n int) error {
		var err error
		definition := parse(crd(group, fmt.Sprintf("Kind%d", n)))
		definitions[n], err = resourceOf(definition).Create(w.ctx, definition, metav1.CreateOptions{})
		return err
	})
	w.atOnce(kinds, func(n int) error {
		object := w.parse(fmt.Sprintf("{apiVersion: %s/v1, kind: Kind%d, metadata: {name: one, namespace: NS}}", group, n))
		var err error
		var created *unstructured.Unstructured
		for w.ctx.Err() == nil { // until it is served
			if created, err = resourceOf(object).Create(w.ctx, object, metav1.CreateOptions{}); err == nil {
				break
			}
			<-time.After(50 * time.Millisecond)
		}
		if err != nil {
			return err
		}
		p := w.parse(owned(pod(fmt.Sprintf("pod-%d", n)), created))
		if p, err = resourceOf(p).Create(w.ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err = resourceOf(p).Patch(w.ctx, p.GetName(), types.MergePatchType, []byte(restarted(1, "Error")), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
		ev := w.parse(event("Churned", p))
		_, err = resourceOf(ev).Create(w.ctx, ev, metav1.CreateOptions{})
		return err
	})
	tracked := make([][]target.Workload, kinds)
	for n := range workloads {
		kind := n % kinds
		tracked[kind] = append(tracked[kind], w.track(fmt.Sprintf("churn-%d", n), fmt.Sprintf("%s/v1 Kind%d one", group, kind)))
	}
	for kind := range kinds {
		w.expectState(tracked[kind][0], 0, target.Present, "")
		w.expectLives(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: fmt.Sprintf("pod-%d", kind)}, "[1]")
	}
	w.eventually("the Event of every kind is offered", func() string {
		n := len(w.sink.events("Churned"))
		return complain(n < kinds, fmt.Sprintf("%d are", n))
	})
	for _, of := range tracked {
		for _, wl := range of {
			w.reporter.RecordTransition(wl.Name, target.HealthTransition{UID: types.UID(wl.Name), To: "Down", At: time.Now()})
		}
	}
	w.eventually("the container termination of every kind is offered", func() string {
		n := len(w.sink.events("ContainerRestarted"))
		return complain(n < kinds, fmt.Sprintf("%d are", n))
	})
	w.atOnce(kinds, func(n int) error {
		remove := func() error { return resourceOf(definitions[n]).Delete(w.ctx, definitions[n].GetName(), deleteNow) }
		if n%2 == 0 { // before its workloads, or after them
			if err := remove(); err != nil {
				return err
			}
		}
		for _, wl := range tracked[n] {
			w.targets.Forget(wl.Name)
		}
		if n%2 != 0 {
			if err := remove(); err != nil {
				return err
			}
		}
		p := w.parse(pod(fmt.Sprintf("pod-%d", n)))
		if err := resourceOf(p).Delete(w.ctx, p.GetName(), deleteNow); err != nil {
			return err
		}
		ev := w.parse(event("Churned", p))
		return resourceOf(ev).Delete(w.ctx, ev.GetName(), deleteNow)
	})
}

// atOnce calls do n times, up to 8 times concurrently.
func (w *world) atOnce(n int, do func(int) error) {
	w.Helper()
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	failed := make(chan error, n)
	for i := range n {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failed <- do(i)
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		w.must(err)
	}
}

// rested prunes deleted objects, and drops the records of the test's sink and proxy and the idle connections.
func (w *world) rested() {
	w.reporter.prune(time.Now().Add(24 * time.Hour))
	w.sink.clear()
	w.sink.mu.Lock()
	w.sink.cancelled, w.sink.forgot, w.sink.retained = nil, nil, nil
	w.sink.mu.Unlock()
	w.proxy.mu.Lock()
	w.proxy.requests = nil
	w.proxy.mu.Unlock()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() // which the clients use without TLS
}

// holdings are the sizes of a reporter's state and records.
type holdings struct {
	counts map[string]int
	heap   uint64
}

func (w *world) holdings(store *memoryStore) holdings {
	w.Helper()
	out := holdings{counts: map[string]int{
		"watches that the API server serves": w.serverWatches(".*"),
		"watches":                            w.proxy.watches(""),
		"informers, by the metric":           int(w.gauge()),
		"goroutines":                         runtime.NumGoroutine(),
		"workloads":                          len(w.targets.WorkloadNames()),
		"kept objects":                       len(store.Load(objectTable)),
		"queued":                             w.reporter.queues.len(),
	}}
	live := 0
	for gk := range maps.Keys(w.targets.Kinds()) {
		live += len(w.targets.ExistingObjects(gk.GroupKind(), w.namespace))
	}
	for _, kind := range []schema.GroupKind{{Kind: "Pod"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "batch", Kind: "Job"}} {
		live += len(w.targets.ExistingObjects(kind, w.namespace))
	}
	out.counts["objects in the registry"] = live
	maps.Copy(out.counts, w.reporter.sizes())
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	out.heap = stats.HeapAlloc
	return out
}
