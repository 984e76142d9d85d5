package informers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// fakeAPI serves every kind, and permits all but the denied one. Its informers have synced from the start. An informer of a
// kind whose release is blocked does not stop until it is unblocked.
type fakeAPI struct {
	mu       sync.Mutex
	denied   string         // a kind without permission
	reviews  map[string]int // of the denied kind, by namespace
	running  map[string]int // by resource
	blocking map[string]chan struct{}
}

func (f *fakeAPI) resolve(_ context.Context, gvk schema.GroupVersionKind, _ bool) (mapping, error) {
	return mapping{gvr: gvk.GroupVersion().WithResource(gvk.Kind), namespaced: true, watchable: true}, nil
}

func (f *fakeAPI) missingPermission(_ context.Context, gvr schema.GroupVersionResource, namespace string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gvr.Resource != f.denied {
		return "", nil
	}
	f.reviews[namespace]++
	return "permission missing", nil
}

// deny removes the permission for a kind; "" for none.
func (f *fakeAPI) deny(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = kind
}

// takeReviews returns the number of reviews of the denied kind in namespaces since the last call.
func (f *fakeAPI) takeReviews() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for namespace, reviews := range f.reviews {
		if namespace != "" {
			n += reviews
		}
	}
	clear(f.reviews)
	return n
}

func (f *fakeAPI) acquire(_ context.Context, k *kindWatcher, id informerID) *informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[k.gvk.Kind]++
	return &informer{id: id, gvk: k.gvk, synced: true}
}

func (f *fakeAPI) release(k *kindWatcher, _ *informer) {
	f.mu.Lock()
	blocked := f.blocking[k.gvk.Kind]
	f.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[k.gvk.Kind]--
}

func (f *fakeAPI) informersOf(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[kind]
}

// kindsFixture is a set of kind watchers on a fake API server.
type kindsFixture struct {
	*kinds
	targets *target.Registry
	api     *fakeAPI
}

func newKindsFixture() kindsFixture {
	f := kindsFixture{targets: target.NewRegistry(), api: &fakeAPI{
		reviews: map[string]int{}, running: map[string]int{}, blocking: map[string]chan struct{}{},
	}}
	f.kinds = newKinds(&kindEnv{
		config: DefaultConfig(), targets: f.targets, log: logr.Discard(), discovery: f.api, informers: f.api,
		kindRemoved: func(schema.GroupKind) {}, changed: func(schema.GroupKind) {},
	})
	return f
}

func refOfKind(kind string) target.Ref { return target.Ref{Kind: kind, Namespace: "ns", Name: "x"} }

// list makes a workload list one resource of a kind.
func (f kindsFixture) list(kind string) {
	f.targets.Track(target.Workload{
		Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1},
		Resources: []target.Resource{{Ref: refOfKind(kind), Version: "v1"}},
	})
}

// end stops all watchers.
func (f kindsFixture) end() {
	f.stop(func(schema.GroupVersionKind) bool { return true })
	f.running.Wait()
}

func TestKinds_Reconcile_DoesNotWaitForAStoppedKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newKindsFixture()
		blocked := make(chan struct{})
		f.api.blocking["ConfigMap"] = blocked
		f.list("ConfigMap")
		f.reconcile(t.Context())
		synctest.Wait()
		f.targets.Upsert(target.Object{Identity: target.Identity{Ref: refOfKind("ConfigMap"), UID: "a"}})

		f.list("Service")
		reconciled := make(chan struct{})
		go func() {
			f.reconcile(t.Context())
			close(reconciled)
		}()
		select {
		case <-reconciled:
		case <-time.After(time.Minute):
			t.Error("reconcile waits for an informer that does not stop")
			close(blocked)
			f.end()
			return
		}
		synctest.Wait()
		if n := f.api.informersOf("Service"); n != 1 {
			t.Errorf("the new kind has %d informers while another one stops, want 1", n)
		}
		f.dropStopped()
		if _, known := f.targets.Object("a"); !known {
			t.Error("the objects of a kind are dropped while its informers still run")
		}
		close(blocked)
		<-f.ended
		f.dropStopped()
		if _, known := f.targets.Object("a"); known {
			t.Error("the objects of a kind are kept after its informers have stopped")
		}
		f.end()
	})
}

func TestKinds_DropStopped_KeepsObjectsOfAKindThatIsWatchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newKindsFixture()
		blocked := make(chan struct{})
		f.api.blocking["ConfigMap"] = blocked
		f.list("ConfigMap")
		f.reconcile(t.Context())
		synctest.Wait()
		f.targets.Upsert(target.Object{Identity: target.Identity{Ref: refOfKind("ConfigMap"), UID: "a"}})
		f.list("Service")
		f.reconcile(t.Context())
		f.list("ConfigMap")
		f.reconcile(t.Context())
		close(blocked)
		<-f.ended
		synctest.Wait()
		f.dropStopped()
		if _, known := f.targets.Object("a"); !known {
			t.Error("the objects of a kind that is watched again are dropped")
		}
		if n := f.api.informersOf("ConfigMap"); n != 1 {
			t.Errorf("the kind has %d informers, want 1", n)
		}
		f.end()
	})
}

// The metric counts a kind while the permission is missing, and until no workload lists it.
func TestKinds_CountUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newKindsFixture()
		gauge := NewMetrics(prometheus.NewRegistry()).unwatchedKinds
		expect := func(want float64) {
			t.Helper()
			synctest.Wait()
			f.countUnwatched(gauge)
			for _, state := range unwatchedStates {
				got, wanted := testutil.ToFloat64(gauge.WithLabelValues(string(state))), 0.0
				if state == target.Forbidden {
					wanted = want
				}
				if got != wanted {
					t.Errorf("%v kinds are %s, want %v", got, state, wanted)
				}
			}
		}
		f.api.deny("Secret")
		f.list("Secret")
		f.reconcile(t.Context())
		expect(1)
		f.api.deny("")
		time.Sleep(time.Minute)
		expect(0)
		f.api.deny("Secret")
		f.list("ConfigMap")
		f.reconcile(t.Context())
		f.list("Secret")
		f.reconcile(t.Context())
		expect(1)
		f.list("ConfigMap")
		f.reconcile(t.Context())
		expect(0)
		f.end()
	})
}

func TestKinds_DeniedInManyNamespaces_LimitsReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const namespaces = 1000
		f := newKindsFixture()
		f.api.denied = "Secret"
		for i := range namespaces {
			ref := target.Ref{Kind: "Secret", Namespace: fmt.Sprintf("ns-%d", i), Name: "x"}
			f.targets.Track(target.Workload{
				Name: ref.Namespace, Instance: target.Instance{Type: target.WorkloadInstance, ID: int64(i + 1)},
				Resources: []target.Resource{{Ref: ref, Version: "v1"}},
			})
			f.reconcile(t.Context())
			synctest.Wait()
		}
		if n := f.api.takeReviews(); n != namespaces {
			t.Errorf("%d namespaces that are added one by one take %d reviews, want one each", namespaces, n)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// The wait is 50 s for a thousand namespaces.
		if n := f.api.takeReviews(); n < 10*namespaces || n > 13*namespaces {
			t.Errorf("%d namespaces take %d reviews in ten minutes, want about one a minute each", namespaces, n)
		}
		f.end()
	})
}
