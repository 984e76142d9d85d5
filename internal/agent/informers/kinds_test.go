package informers

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// fakeAPI serves every kind to everybody. Its informers have synced from the start. An informer of a kind whose release is
// blocked does not stop until it is unblocked.
type fakeAPI struct {
	mu       sync.Mutex
	running  map[string]int // by resource
	blocking map[string]chan struct{}
}

func (f *fakeAPI) resolve(_ context.Context, gvk schema.GroupVersionKind, _ bool) (mapping, error) {
	return mapping{gvr: gvk.GroupVersion().WithResource(gvk.Kind), namespaced: true, watchable: true}, nil
}

func (f *fakeAPI) missingVerb(context.Context, schema.GroupVersionResource, string) (string, error) {
	return "", nil
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
	f := kindsFixture{targets: target.NewRegistry(), api: &fakeAPI{running: map[string]int{}, blocking: map[string]chan struct{}{}}}
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
		if _, known := f.targets.KnownObject("a"); !known {
			t.Error("the objects of a kind are dropped while its informers still run")
		}
		close(blocked)
		<-f.ended
		f.dropStopped()
		if _, known := f.targets.KnownObject("a"); known {
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
		if _, known := f.targets.KnownObject("a"); !known {
			t.Error("the objects of a kind that is watched again are dropped")
		}
		if n := f.api.informersOf("ConfigMap"); n != 1 {
			t.Errorf("the kind has %d informers, want 1", n)
		}
		f.end()
	})
}
