package controller

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

func TestWorkloadIsDeclaredOnce(t *testing.T) {
	w := newWorld(t)
	wl := workload("declared", "a", "b")
	w.create(wl)
	w.reconcile(wl.Name)
	generation := w.targets.Generation()
	for range 50 {
		w.reconcile(wl.Name)
	}
	if got := w.targets.Generation(); got != generation {
		t.Errorf("50 more reconciles changed what is declared %d times, expected never", got-generation)
	}
	if got := w.writes.Load(); got != 1 {
		t.Errorf("the status was written %d times, expected once", got)
	}
	stored := w.stored(wl.Name)
	if !slices.Contains(stored.Finalizers, v1alpha1.Finalizer) {
		t.Errorf("the finalizers are %v, expected %s among them", stored.Finalizers, v1alpha1.Finalizer)
	}
	declared, _ := w.targets.Workload(wl.Name)
	if declared.Instance.ID != wl.Spec.WorkloadInstanceID || len(declared.Resources) != 2 ||
		declared.Resources[1].ID != wl.Spec.WorkloadResourceInstances[1].ThreeportID || declared.Resources[1].Name != "b" {
		t.Errorf("declared was %+v, expected %+v", declared, wl.Spec)
	}
}

func TestInstanceOfAWorkloadChanges(t *testing.T) {
	w := newWorld(t)
	wl := workload("moves", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	old := instanceOf(wl)
	stored := w.stored(wl.Name)
	stored.Spec.WorkloadInstanceID++
	w.must(shared.client.Update(t.Context(), stored))
	w.reconcile(wl.Name)
	if got := w.delivery.forgotten(); len(got) != 1 || got[0] != old {
		t.Errorf("forgotten were the accounts of %v, expected that of %s", got, old)
	}
}

func TestMissingWorkloadIsForgotten(t *testing.T) {
	w := newWorld(t)
	wl := workload("missing", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	stored := w.stored(wl.Name)
	stored.Finalizers = nil // by hand: the reconciler does not get to finalize
	w.must(shared.client.Update(t.Context(), stored))
	w.must(shared.client.Delete(t.Context(), stored))
	w.reconcile(wl.Name)
	w.reconcile(wl.Name)
	w.leftovers()
	if got := w.delivery.forgotten(); len(got) != 1 || got[0] != instanceOf(wl) {
		t.Errorf("forgotten were the accounts of %v, expected that of %s", got, instanceOf(wl))
	}
}

func TestAccountStaysWhileAnotherWorkloadIsOfTheInstance(t *testing.T) {
	w := newWorld(t)
	one, two := workload("one", "a"), workload("two", "a")
	two.Spec.WorkloadInstanceID = one.Spec.WorkloadInstanceID
	for _, wl := range []*v1alpha1.ThreeportWorkload{one, two} {
		w.create(wl)
		w.reconcile(wl.Name)
	}
	w.must(shared.client.Delete(t.Context(), one))
	w.reconcile(one.Name)
	if got := w.delivery.forgotten(); len(got) > 0 {
		t.Errorf("forgotten were %v while %s is still of the instance", got, two.Name)
	}
	w.must(shared.client.Delete(t.Context(), two))
	w.reconcile(two.Name)
	if got := w.delivery.forgotten(); !slices.Contains(got, instanceOf(two)) {
		t.Errorf("forgotten were %v, expected %s", got, instanceOf(two))
	}
	w.leftovers()
}

func TestDeletionWaitsForTheLastReports(t *testing.T) {
	for _, c := range []struct {
		reason string
		waits  func(*world)
		ends   func(*world)
	}{
		{
			"for the end of objects to be seen",
			func(w *world) { w.watcher.caughtUp = false },
			func(w *world) { w.watcher.caughtUp = true },
		},
		{
			"for reports to be delivered",
			func(w *world) { w.delivery.progress = Progress{Pending: 1} },
			func(w *world) { w.delivery.progress = Progress{} },
		},
		{
			"while it cannot be known, but not for ever",
			func(w *world) { w.watcher.caughtUpErr = errors.New("the API server is busy") },
			func(w *world) { w.clock = w.clock.Add(deletionGrace) },
		},
		{
			"for objects, but not for ever",
			func(w *world) { w.watcher.caughtUp = false },
			func(w *world) { w.clock = w.clock.Add(deletionGrace) },
		},
		{
			"for reports, but not for ever",
			func(w *world) { w.delivery.progress = Progress{Pending: 1} },
			func(w *world) { w.clock = w.clock.Add(deletionGrace) },
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t)
			wl := workload("deleted", "a")
			w.create(wl)
			w.reconcile(wl.Name)
			c.waits(w)
			w.must(shared.client.Delete(t.Context(), wl))
			begun := w.clock
			for range 9 {
				result := w.reconcile(wl.Name)
				if result.RequeueAfter <= 0 || result.RequeueAfter > deletionPollMost || w.stored(wl.Name) == nil {
					t.Fatalf("%s after the deletion it is asked again in %s, expected within %s, and the workload to be there",
						w.clock.Sub(begun), result.RequeueAfter, deletionPollMost)
				}
				w.clock = w.clock.Add(deletionGrace / 10)
			}
			w.clock = begun.Add(deletionGrace - time.Millisecond)
			w.reconcile(wl.Name)
			if w.stored(wl.Name) == nil {
				t.Fatal("the workload is gone before its last reports, and before the time for them is over")
			}
			if _, tracked := w.targets.Workload(wl.Name); !tracked {
				t.Error("the workload is forgotten while it waits for its last reports")
			}
			w.clock = begun
			c.ends(w)
			w.reconcile(wl.Name)
			if w.stored(wl.Name) != nil {
				t.Error("the workload is still there although nothing has to be waited for")
			}
			w.leftovers()
			if got := w.delivery.forgotten(); !slices.Contains(got, instanceOf(wl)) {
				t.Errorf("forgotten were the accounts of %v, expected that of %s", got, instanceOf(wl))
			}
		})
	}
}

// A watcher that does not answer is not waited for longer than the time that is left.
func TestDeletionIsBoundedByASlowAnswer(t *testing.T) {
	w := newWorld(t)
	wl := workload("slow", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.watcher.blockUntilContextIsOver = true
	w.must(shared.client.Delete(t.Context(), wl))
	stored := w.stored(wl.Name)
	begun := time.Now()
	if w.reconciler.settled(t.Context(), stored, 10*time.Millisecond) {
		t.Error("a question without an answer counts as settled")
	}
	if took := time.Since(begun); took > askTimeout/2 {
		t.Errorf("the answer was awaited for %s, expected 10ms", took)
	}
}

func TestDeletedBeforeThisProcessBegan(t *testing.T) {
	w := newWorld(t)
	wl := workload("old", "a")
	wl.Finalizers = []string{v1alpha1.Finalizer}
	w.create(wl)
	w.must(shared.client.Delete(t.Context(), wl))
	w.reconcile(wl.Name)
	if w.stored(wl.Name) != nil {
		t.Error("the workload is still there, expected it to be released at once")
	}
	w.leftovers()
}

func TestForeignFinalizerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	wl := workload("foreign", "a")
	wl.Finalizers = []string{"example.com/other"}
	w.create(wl)
	w.reconcile(wl.Name)
	w.must(shared.client.Delete(t.Context(), wl))
	for range 3 {
		w.reconcile(wl.Name)
	}
	if stored := w.stored(wl.Name); stored == nil || len(stored.Finalizers) != 1 || stored.Finalizers[0] != "example.com/other" {
		t.Errorf("stored is %v, expected the workload with the other finalizer only", stored)
	}
	w.leftovers()
}

// What cannot be written is tried again, and the workload is kept until it can.
func TestConflictKeepsTheWorkload(t *testing.T) {
	w := newWorld(t)
	wl := workload("conflict", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.must(shared.client.Delete(t.Context(), wl))
	w.failPatch.Store(true)
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: wl.Name}})
	if !apierrors.IsConflict(err) {
		t.Errorf("the reconcile returned %v, expected the conflict", err)
	}
	if got := fmt.Sprint(w.targets.Workloads()); got != "[conflict]" {
		t.Errorf("tracked are %s, expected the workload still", got)
	}
	w.failPatch.Store(false)
	w.reconcile(wl.Name)
	w.leftovers()
}

// A workload that was deleted while nothing watched is watched for what became of its objects.
func TestAWorkloadThatIsFoundDeletedIsTrackedUntilItIsSettled(t *testing.T) {
	w := newWorld(t)
	wl := workload("found-deleted", "a")
	wl.Finalizers = []string{v1alpha1.Finalizer}
	w.create(wl)
	w.must(shared.client.Delete(t.Context(), wl))
	w.delivery.stranger = true
	w.reconcile(wl.Name)
	if _, tracked := w.targets.Workload(wl.Name); !tracked || len(w.delivery.declared) != 1 || w.stored(wl.Name) == nil {
		t.Fatal("it is let go before what the control plane has of it is known")
	}
	w.delivery.stranger = false
	w.reconcile(wl.Name)
	if _, tracked := w.targets.Workload(wl.Name); tracked || w.stored(wl.Name) != nil {
		t.Error("it is not let go")
	}
}
