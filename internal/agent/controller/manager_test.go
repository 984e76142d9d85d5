package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// patience is more than anything here takes on a busy machine.
const patience = 90 * time.Second

// eventually waits until there is no complaint.
func (w *world) eventually(within time.Duration, expected string, check func() string) {
	w.Helper()
	complaint := ""
	err := wait.PollUntilContextTimeout(w.Context(), 10*time.Millisecond, within, true, func(context.Context) (bool, error) {
		complaint = check()
		return complaint == "", nil
	})
	if err != nil {
		w.Fatalf("expected within %s: %s; at last: %s", within, expected, complaint)
	}
}

// The reconciler as the manager runs it: with a cache, a queue and workers.
func TestReconcilerInAManager(t *testing.T) {
	w := newWorld(t)
	mgr, err := ctrl.NewManager(shared.api.Config(), ctrl.Options{
		Scheme: shared.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // the test may be repeated
	})
	w.must(err)
	// What is read comes from the cache, what is written is counted.
	w.reconciler = New(cached{w.counting(shared.client), mgr.GetClient()}, w.targets, w.delivery)
	w.reconciler.Watch(w.watcher)
	w.reconciler.now = func() time.Time { return w.clock } // it stands still: what is not urgent is never written
	w.reconciler.Changed("too-early")                      // must not panic, nor block
	w.must(w.reconciler.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}()

	wl := workload("managed", "a")
	w.create(wl)
	w.eventually(patience, "a status", func() string {
		if got := w.stored(wl.Name).Status.Health; got != "Healthy" {
			return "health is " + got
		}
		return ""
	})

	// Touching it is no change of what is declared, and nothing to write.
	writes, generation := w.writes.Load(), w.targets.Generation()
	for n := range 50 {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, n)
		w.must(shared.client.Patch(t.Context(), w.stored(wl.Name), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	w.watcher.set(func(f *fakeWatcher) { f.state = target.Absent })
	for range 100 {
		w.reconciler.Changed(wl.Name)
	}
	w.eventually(resyncInterval-5*time.Second, "the new state in the status, which waits for no resync", func() string {
		if got := w.stored(wl.Name).Status.Resources[0].State; got != "Absent" {
			return "it is " + string(got)
		}
		return ""
	})
	w.eventually(patience, "one write for one change and 50 touches", func() string {
		if got := w.writes.Load() - writes; got != 1 { // one more while the API server refuses what comes of an old state
			return fmt.Sprintf("there are %d", got)
		}
		return ""
	})
	if got := w.targets.Generation(); got != generation {
		t.Error("touching the workload changed what is declared")
	}

	w.delivery.set(Progress{Pending: 1})
	w.must(shared.client.Delete(t.Context(), wl))
	w.eventually(patience, "the deletion to wait for delivery", func() string {
		w.watcher.mu.Lock()
		defer w.watcher.mu.Unlock()
		if w.watcher.asked == 0 {
			return "it was not asked"
		}
		return ""
	})
	if w.stored(wl.Name) == nil {
		t.Fatal("the workload is gone before its last report")
	}
	w.delivery.set(Progress{})
	w.eventually(patience, "the workload to be gone", func() string {
		if w.stored(wl.Name) != nil {
			return "it is there"
		}
		return ""
	})
	w.eventually(patience, "the workload to be forgotten", func() string {
		if !w.targets.Empty() {
			return "it is tracked"
		}
		return ""
	})
}

// cached reads from a cache and writes to the API server.
type cached struct {
	client.Client
	cache client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.cache.Get(ctx, key, obj, opts...)
}
