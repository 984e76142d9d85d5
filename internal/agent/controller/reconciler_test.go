package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestReconcile_Repeated_DeclaresOnce(t *testing.T) {
	w := newWorld(t)
	wl := workload("declared", "a", "b")
	w.create(wl)
	w.reconcile(wl.Name)
	generation := w.targets.Generation()
	for range 50 {
		w.reconcile(wl.Name)
	}
	if got := w.targets.Generation(); got != generation {
		t.Errorf("50 more reconciles changed the declarations %d times, want 0", got-generation)
	}
	if got := w.writes.Load(); got != 1 {
		t.Errorf("the status was written %d times, want 1", got)
	}
	stored := w.stored(wl.Name)
	if !slices.Contains(stored.Finalizers, v1alpha1.Finalizer) {
		t.Errorf("the finalizers are %v, want %s among them", stored.Finalizers, v1alpha1.Finalizer)
	}
	declared, _ := w.targets.Workload(wl.Name)
	if declared.Instance.ID != wl.Spec.WorkloadInstanceID || len(declared.Resources) != 2 ||
		declared.Resources[1].ID != wl.Spec.WorkloadResourceInstances[1].ThreeportID || declared.Resources[1].Name != "b" {
		t.Errorf("the declaration is %+v, want %+v", declared, wl.Spec)
	}
}

// A thousand workloads may exist at the start: all are declared before the first writes, and have finalizers before the first statuses.
// The finalizer of a later workload comes before statuses and deletions.
func TestReconcile_New_StepsHavePriorities(t *testing.T) {
	if finalizerPriority >= handler.LowPriority || statusPriority >= finalizerPriority || statusPriority >= 0 {
		t.Errorf("the priorities are %d of declarations at a start, %d of finalizers, %d of statuses; want them in this order",
			handler.LowPriority, finalizerPriority, statusPriority)
	}
	t.Run("exists at the start", func(t *testing.T) {
		w := newWorld(t)
		wl := workload("old", "a")
		w.create(wl)
		expectSteps(w, wl, finalizerPriority)
	})
	t.Run("created later", func(t *testing.T) {
		w := newWorld(t)
		w.must(w.reconciler.start(t.Context()))
		wl := workload("new", "a")
		w.create(wl)
		expectSteps(w, wl, 0)
	})
}

// expectSteps reconciles a new workload, and fails the test if the next steps have other priorities.
func expectSteps(w *world, wl *v1alpha1.ThreeportWorkload, finalizer int) {
	w.Helper()
	for _, want := range []struct {
		step     string
		priority int
		delay    time.Duration
	}{
		{"declared", finalizer, nextStepDelay},
		{"declared, finalizer", statusPriority, nextStepDelay},
		{"declared, finalizer, status", statusPriority, resyncInterval},
	} {
		var result ctrl.Result
		w.must(retryTimeouts(func() (err error) {
			result, err = w.reconciler.Reconcile(w.Context(), requestOf(wl))
			return err
		}))
		var done []string
		if _, declared := w.targets.Workload(wl.Name); declared {
			done = append(done, "declared")
		}
		stored := w.stored(wl.Name)
		if len(stored.Finalizers) > 0 {
			done = append(done, "finalizer")
		}
		if stored.Status.ObservedGeneration > 0 {
			done = append(done, "status")
		}
		if got := strings.Join(done, ", "); got != want.step || result.Priority == nil || *result.Priority != want.priority || result.RequeueAfter != want.delay {
			w.Errorf("done is %q, the next step %+v; want %+v", got, result, want)
		}
	}
}

func TestReconcile_InstanceChanges_ForgetsOldInstance(t *testing.T) {
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
		t.Errorf("forgotten instances are %v, want %s", got, old)
	}
	w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload moves names another instance", old))
}

func TestReconcile_WorkloadNotFound_ForgetsIt(t *testing.T) {
	w := newWorld(t)
	wl := workload("missing", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	stored := w.stored(wl.Name)
	stored.Finalizers = nil // so that the reconciler does not finalize
	w.must(shared.client.Update(t.Context(), stored))
	w.must(shared.client.Delete(t.Context(), stored))
	w.reconcile(wl.Name)
	w.reconcile(wl.Name)
	w.expectEmpty()
	if got := w.delivery.forgotten(); len(got) != 1 || got[0] != instanceOf(wl) {
		t.Errorf("forgotten instances are %v, want %s", got, instanceOf(wl))
	}
	w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload missing was deleted", instanceOf(wl)))
}

func TestReconcile_TwoWorkloadsOfInstance_ForgetsInstanceWithLast(t *testing.T) {
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
		t.Errorf("forgotten instances are %v while %s still has the instance", got, two.Name)
	}
	w.expectEnded()
	w.must(shared.client.Delete(t.Context(), two))
	w.reconcile(two.Name)
	if got := w.delivery.forgotten(); !slices.Contains(got, instanceOf(two)) {
		t.Errorf("forgotten instances are %v, want %s", got, instanceOf(two))
	}
	w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload two was deleted", instanceOf(two)))
	w.expectEmpty()
}

func TestReconcile_TwoWorkloadsOfInstance_StatusesNameEachOther(t *testing.T) {
	w := newWorld(t)
	queue := &recordedQueue{}
	w.reconciler.queue.set(queue)
	queued := func(want *v1alpha1.ThreeportWorkload) {
		t.Helper()
		if got := queue.take(); !maps.Equal(got, map[string]time.Duration{want.Name: statusInterval}) {
			t.Fatalf("queued are %v, want %s after %s", got, want.Name, statusInterval)
		}
	}
	expect := func(wl *v1alpha1.ThreeportWorkload, want string) {
		t.Helper()
		w.clock = w.clock.Add(statusInterval)
		w.reconcile(wl.Name)
		got := ""
		if c := meta.FindStatusCondition(w.stored(wl.Name).Status.Conditions, v1alpha1.ConditionInstanceShared); c != nil {
			got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		if got != want {
			t.Errorf("the condition of %s is %q, want %q", wl.Name, got, want)
		}
	}
	one, two := workload("shared-one", "a"), workload("shared-two", "b")
	two.Spec.WorkloadInstanceID = one.Spec.WorkloadInstanceID
	names := func(other *v1alpha1.ThreeportWorkload) string {
		return fmt.Sprintf("True SameInstance: the control plane shows one workload for this and for others with WorkloadInstance %d: ThreeportWorkload %s",
			one.Spec.WorkloadInstanceID, other.Name)
	}
	w.create(one)
	expect(one, "")
	w.create(two)
	expect(two, names(one))
	queued(one)
	expect(one, names(two))

	moved := w.stored(two.Name)
	moved.Spec.WorkloadInstanceID++
	w.must(shared.client.Update(t.Context(), moved))
	expect(two, "")
	queued(one)
	expect(one, "")

	moved = w.stored(two.Name)
	moved.Spec.WorkloadInstanceID--
	w.must(shared.client.Update(t.Context(), moved))
	expect(two, names(one))
	queued(one)
	expect(one, names(two))
	w.must(shared.client.Delete(t.Context(), two))
	w.reconcile(two.Name)
	queued(one)
	expect(one, "")
}

// recordedQueue records which workloads are to be reconciled, and after which delay.
type recordedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	delays map[string]time.Duration
}

func (q *recordedQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if q.delays == nil {
		q.delays = map[string]time.Duration{}
	}
	for _, r := range requests {
		q.delays[r.Name] = o.After
	}
}

// take returns the delays since the last call.
func (q *recordedQueue) take() map[string]time.Duration {
	taken := q.delays
	q.delays = nil
	return taken
}

// Thousands of workloads whose reports are always pending do not occupy the workers.
func TestPollInterval_GrowsWithTheWorkloads(t *testing.T) {
	w := newWorld(t)
	for n, want := range map[int]time.Duration{1: statusInterval, 250: statusInterval, 1000: 20 * time.Second, 10_000: resyncInterval} {
		w.reconciler.states = newWorkloadStates(w.clock)
		for i := range n {
			w.reconciler.states.get(workload(fmt.Sprint(i)), w.clock)
		}
		if got := w.reconciler.pollInterval(); got != want {
			t.Errorf("with %d workloads the interval is %s, want %s", n, got, want)
		}
	}
}

// At the first reconcile the outbox learns which instances of an earlier process are still declared.
func TestReconcile_First_EndsUndeclaredInstances(t *testing.T) {
	w := newWorld(t)
	one, two := workload("first", "a"), workload("second", "a")
	w.create(one)
	w.create(two)
	w.reconcile(one.Name)
	w.reconcile(two.Name)
	if len(w.delivery.isDeclared) != 1 {
		t.Fatalf("undeclared instances were ended %d times, want once", len(w.delivery.isDeclared))
	}
	gone := instanceOf(two)
	gone.ID = 1
	if declared := w.delivery.isDeclared[0]; !declared(instanceOf(one)) || !declared(instanceOf(two)) || declared(gone) {
		t.Errorf("declared are %s: %t, %s: %t, %s: %t; want the first two", instanceOf(one), declared(instanceOf(one)),
			instanceOf(two), declared(instanceOf(two)), gone, declared(gone))
	}
}

// The informers wait until the workloads that existed at the start are declared, and for no deleted or excluded one.
func TestReconcile_AllDeclared_AfterTheLastOfTheStart(t *testing.T) {
	isClosed := func(w *world) bool {
		select {
		case <-w.reconciler.AllDeclared():
			return true
		default:
			return false
		}
	}
	expect := func(w *world, when string, want bool) {
		w.Helper()
		if got := isClosed(w); got != want {
			w.Errorf("%s, all are declared: %t, want %t", when, got, want)
		}
	}
	t.Run("two and a deleted one", func(t *testing.T) {
		w := newWorld(t)
		one, two, deleted := workload("first", "a"), workload("second", "a"), workload("deleted", "a")
		deleted.Finalizers = []string{v1alpha1.Finalizer}
		for _, wl := range []*v1alpha1.ThreeportWorkload{one, two, deleted} {
			w.create(wl)
		}
		w.must(shared.client.Delete(t.Context(), deleted))
		expect(w, "before the start", false)
		w.reconcile(one.Name)
		w.reconcile(one.Name)
		expect(w, "after the first", false)
		w.reconcile(two.Name)
		expect(w, "after both", true)
		w.reconcile(two.Name)
	})
	t.Run("two that are deleted before their first reconcile", func(t *testing.T) {
		w := newWorld(t)
		gone, held := workload("gone", "a"), workload("held", "a")
		held.Finalizers = []string{v1alpha1.Finalizer}
		for _, wl := range []*v1alpha1.ThreeportWorkload{gone, held} {
			w.create(wl)
		}
		w.must(w.reconciler.start(t.Context()))
		for _, wl := range []*v1alpha1.ThreeportWorkload{gone, held} {
			w.must(shared.client.Delete(t.Context(), wl))
			expect(w, "before the reconcile of "+wl.Name, false)
			w.reconcile(wl.Name)
		}
		expect(w, "after both", true)
	})
	t.Run("none", func(t *testing.T) {
		w := newWorld(t)
		w.must(w.reconciler.start(t.Context()))
		expect(w, "without workloads", true)
	})
	t.Run("an excluded one", func(t *testing.T) {
		w := newWorld(t)
		w.lists.maxBytes = 1
		wl := workload("large", "a")
		w.create(wl)
		w.reconcile(wl.Name)
		expect(w, "after the exclusion", true)
	})
}

func TestFinalize_WaitsForLastReports(t *testing.T) {
	for _, c := range []struct {
		reason string
		waits  func(*world)
		ends   func(*world)
	}{
		{
			reason: "a deletion is not observed yet",
			waits:  func(w *world) { w.reporter.deletionsObserved = false },
			ends:   func(w *world) { w.reporter.deletionsObserved = true },
		},
		{
			reason: "a report is pending",
			waits:  func(w *world) { w.delivery.progress = target.DeliveryProgress{Pending: 1} },
			ends:   func(w *world) { w.delivery.progress = target.DeliveryProgress{} },
		},
		{
			reason: "checking the deletions fails until the grace period ends",
			waits:  func(w *world) { w.reporter.deletionsErr = errors.New("the API server is busy") },
			ends:   func(w *world) { w.clock = w.clock.Add(deletionGrace) },
		},
		{
			reason: "for objects, but not for ever",
			waits:  func(w *world) { w.reporter.deletionsObserved = false },
			ends:   func(w *world) { w.clock = w.clock.Add(deletionGrace) },
		},
		{
			reason: "a report is pending until the grace period ends",
			waits:  func(w *world) { w.delivery.progress = target.DeliveryProgress{Pending: 1} },
			ends:   func(w *world) { w.clock = w.clock.Add(deletionGrace) },
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
				if result.RequeueAfter <= 0 || result.RequeueAfter > maxDeletionPoll || w.stored(wl.Name) == nil {
					t.Fatalf("%s after the deletion the next check is in %s, want within %s; the workload must still exist",
						w.clock.Sub(begun), result.RequeueAfter, maxDeletionPoll)
				}
				w.clock = w.clock.Add(deletionGrace / 10)
			}
			w.clock = begun.Add(deletionGrace - time.Millisecond)
			w.reconcile(wl.Name)
			if w.stored(wl.Name) == nil {
				t.Fatal("the workload was released before its last reports and before the grace period ended")
			}
			if _, tracked := w.targets.Workload(wl.Name); !tracked {
				t.Error("the workload was forgotten while its last reports were due")
			}
			w.clock = begun
			c.ends(w)
			w.reconcile(wl.Name)
			if w.stored(wl.Name) != nil {
				t.Error("the workload was not released")
			}
			w.expectEmpty()
			if got := w.delivery.forgotten(); !slices.Contains(got, instanceOf(wl)) {
				t.Errorf("forgotten instances are %v, want %s", got, instanceOf(wl))
			}
			w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload deleted was deleted", instanceOf(wl)))
		})
	}
}

// Hundreds of workloads may be deleted at once: a deletion makes its requests only after new workloads have their finalizers.
func TestFinalize_First_WaitsForNewWorkloads(t *testing.T) {
	w := newWorld(t)
	wl := workload("deleted", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.must(shared.client.Delete(t.Context(), wl))
	result, err := w.reconciler.Reconcile(t.Context(), requestOf(wl))
	w.must(err)
	if result.RequeueAfter != nextStepDelay || *result.Priority != statusPriority || w.reporter.deletionChecks > 0 || w.stored(wl.Name) == nil {
		t.Errorf("the first step has the result %+v with the priority %d, and %d checks; want none, and the next step with %d",
			result, *result.Priority, w.reporter.deletionChecks, statusPriority)
	}
	w.reconcile(wl.Name)
	if w.stored(wl.Name) != nil {
		t.Error("the workload was not released by the second step")
	}
}

// The checks of many deleted workloads leave workers for others: each makes a request per object.
func TestFinalize_ManyDeletions_CheckFew(t *testing.T) {
	w := newWorld(t)
	wl := workload("deleted", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.must(shared.client.Delete(t.Context(), wl))
	expect := func(why string, checks int, exists bool) {
		t.Helper()
		w.reconcile(wl.Name)
		if w.reporter.deletionChecks != checks || (w.stored(wl.Name) != nil) != exists {
			t.Errorf("%s: %d checks were made, want %d; the workload exists: %t, want %t", why, w.reporter.deletionChecks, checks, w.stored(wl.Name) != nil, exists)
		}
	}
	w.delivery.set(target.DeliveryProgress{Pending: 1})
	expect("a report is pending", 0, true)
	w.delivery.set(target.DeliveryProgress{})
	for range maxDeletionChecks {
		w.reconciler.deletionChecks <- struct{}{}
	}
	expect("others are checked", 0, true)
	<-w.reconciler.deletionChecks
	expect("another check has ended", 1, false)
	if n := len(w.reconciler.deletionChecks); n != maxDeletionChecks-1 {
		t.Errorf("%d checks are counted afterwards, want %d", n, maxDeletionChecks-1)
	}
}

// A check of the deletions must not outlast the grace period.
func TestFinalize_SlowCheck_IsBounded(t *testing.T) {
	w := newWorld(t)
	wl := workload("slow", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.reporter.blockDeletionChecks = true
	w.must(shared.client.Delete(t.Context(), wl))
	tracked, _ := w.targets.Workload(wl.Name)
	begun := time.Now()
	if w.reconciler.lastReportsDelivered(t.Context(), tracked, 10*time.Millisecond) {
		t.Error("the last reports count as delivered although the check timed out")
	}
	if took := time.Since(begun); took > checkTimeout/2 {
		t.Errorf("the check took %s, want 10ms", took)
	}
}

// The last reports are those of the tracked instance. Another one that the spec names since has no initial sync.
func TestFinalize_SpecNamesAnotherInstance_ReleasesAtOnce(t *testing.T) {
	w := newWorld(t)
	wl := workload("moves-deleted", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.must(shared.client.Delete(t.Context(), wl))
	moved := w.stored(wl.Name)
	moved.Spec.WorkloadInstanceID++
	w.must(shared.client.Update(t.Context(), moved))
	w.reconcile(wl.Name)
	if w.stored(wl.Name) != nil {
		t.Error("the workload was not released at once")
	}
	w.expectEnded(fmt.Sprintf("%s: ThreeportWorkload %s was deleted", instanceOf(wl), wl.Name))
	w.expectEmpty()
}

func TestFinalize_DeletedBeforeStart_ReleasesAtOnce(t *testing.T) {
	w := newWorld(t)
	wl := workload("old", "a")
	wl.Finalizers = []string{v1alpha1.Finalizer}
	w.create(wl)
	w.must(shared.client.Delete(t.Context(), wl))
	w.reconcile(wl.Name)
	if w.stored(wl.Name) != nil {
		t.Error("the workload was not released at once")
	}
	w.expectEmpty()
}

func TestFinalize_KeepsForeignFinalizer(t *testing.T) {
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
		t.Errorf("stored is %v, want the workload with only the other finalizer", stored)
	}
	w.expectEmpty()
}

// The grace period of a deletion does not begin with that of an earlier ThreeportWorkload with the same name.
func TestFinalize_CreatedAgain_WaitsAnew(t *testing.T) {
	w := newWorld(t)
	w.delivery.set(target.DeliveryProgress{Pending: 1})
	first := workload("created-again", "a")
	w.create(first)
	w.reconcile(first.Name)
	w.must(shared.client.Delete(t.Context(), first))
	w.reconcile(first.Name)
	stored := w.stored(first.Name)
	stored.Finalizers = nil // by a person who does not wait
	w.must(shared.client.Update(t.Context(), stored))

	second := workload(first.Name, "a")
	w.create(second)
	w.reconcile(second.Name)
	w.clock = w.clock.Add(deletionGrace)
	w.must(shared.client.Delete(t.Context(), second))
	w.reconcile(second.Name)
	if w.stored(second.Name) == nil {
		t.Error("the workload was released before its last reports and before the grace period ended")
	}
}

// The workload stays tracked until the finalizer is removed.
func TestFinalize_Conflict_KeepsWorkload(t *testing.T) {
	w := newWorld(t)
	wl := workload("conflict", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.must(shared.client.Delete(t.Context(), wl))
	w.failPatch.Store(true)
	_, err := w.reconciler.Reconcile(t.Context(), requestOf(wl)) // sees the deletion
	w.must(err)
	_, err = w.reconciler.Reconcile(t.Context(), requestOf(wl))
	if !apierrors.IsConflict(err) {
		t.Errorf("Reconcile returned %v, want the conflict", err)
	}
	if got := fmt.Sprint(w.targets.WorkloadNames()); got != "[conflict]" {
		t.Errorf("tracked workloads are %s, want [conflict]", got)
	}
	w.failPatch.Store(false)
	w.reconcile(wl.Name)
	w.expectEmpty()
}

// The objects of a workload that was deleted while no agent ran are watched until their deletion is reported.
func TestFinalize_DeletedBeforeStart_TrackedUntilReported(t *testing.T) {
	w := newWorld(t)
	wl := workload("found-deleted", "a")
	wl.Finalizers = []string{v1alpha1.Finalizer}
	w.create(wl)
	w.must(shared.client.Delete(t.Context(), wl))
	w.delivery.notSynced = true
	w.reconcile(wl.Name)
	if _, tracked := w.targets.Workload(wl.Name); !tracked || len(w.delivery.declared) != 1 || w.stored(wl.Name) == nil {
		t.Fatal("the workload was released before the initial sync")
	}
	w.delivery.notSynced = false
	w.reconcile(wl.Name)
	if _, tracked := w.targets.Workload(wl.Name); tracked || w.stored(wl.Name) != nil {
		t.Error("the workload was not released")
	}
}
