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

// eventuallyTimeout is longer than any wait on a busy machine.
const eventuallyTimeout = 90 * time.Second

// eventually waits until a check returns no complaint.
func (w *world) eventually(within time.Duration, expected string, check func() string) {
	w.Helper()
	complaint := ""
	err := wait.PollUntilContextTimeout(w.Context(), 10*time.Millisecond, within, true, func(context.Context) (bool, error) {
		complaint = check()
		return complaint == "", nil
	})
	if err != nil {
		w.Fatalf("expected within %s: %s; last check: %s", within, expected, complaint)
	}
}

// The reconciler runs with a cache, a queue and workers.
func TestReconciler_InManager(t *testing.T) {
	w := newWorld(t)
	mgr, err := ctrl.NewManager(shared.api.Config(), ctrl.Options{
		Scheme: shared.scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: w.cacheOptions(),
		Controller: config.Controller{SkipNameValidation: new(true)}, // for -count
	})
	w.must(err)
	w.reconciler = New(cached{w.counting(shared.client), mgr.GetClient()}, mgr.GetAPIReader(), w.lists, w.targets, w.delivery, w.delivery)
	w.reconciler.SetReporter(w.reporter)
	w.reconciler.now = func() time.Time { return w.clock } // The clock is fixed, so only immediate changes are written.
	w.reconciler.Changed("too-early")                      // must neither panic nor block
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
	w.eventually(eventuallyTimeout, "a status", func() string {
		if got := w.stored(wl.Name).Status.Health; got != "Healthy" {
			return "health is " + got
		}
		return ""
	})

	// Another annotation changes neither the declaration nor the status.
	writes, generation := w.writes.Load(), w.targets.Generation()
	for n := range 50 {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"other":"%d"}}}`, n)
		w.must(shared.client.Patch(t.Context(), w.stored(wl.Name), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	w.reporter.set(func(f *fakeReporter) { f.state = target.Absent })
	for range 100 {
		w.reconciler.Changed(wl.Name)
	}
	w.eventually(resyncInterval-5*time.Second, "the new state in the status before the next resync", func() string {
		if got := w.stored(wl.Name).Status.Resources[0].State; got != "Absent" {
			return "it is " + string(got)
		}
		return ""
	})
	w.eventually(eventuallyTimeout, "one write for one change of a state and 50 of an annotation", func() string {
		if got := w.writes.Load() - writes; got != 1 { // A write of a stale object counts until the API server rejects it.
			return fmt.Sprintf("there are %d", got)
		}
		return ""
	})
	if got := w.targets.Generation(); got != generation {
		t.Error("an annotation changed the declaration")
	}

	w.delivery.set(target.DeliveryProgress{Pending: 1})
	w.must(shared.client.Delete(t.Context(), wl))
	w.eventually(eventuallyTimeout, "the deletion to wait for delivery", func() string {
		if w.reconciler.states.get(wl, w.clock).deletedSince.IsZero() {
			return "the deletion was not seen"
		}
		return ""
	})
	if w.stored(wl.Name) == nil {
		t.Fatal("the workload was deleted before its last report was delivered")
	}
	w.delivery.set(target.DeliveryProgress{})
	w.eventually(eventuallyTimeout, "the workload to be deleted", func() string {
		if w.stored(wl.Name) != nil {
			return "it exists"
		}
		return ""
	})
	w.eventually(eventuallyTimeout, "the workload to be forgotten", func() string {
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
