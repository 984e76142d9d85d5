package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// fakeReporter is a Reporter with settable answers.
type fakeReporter struct {
	targets *target.Registry

	mu                   sync.Mutex
	state                target.State // of every resource
	message              string
	reason               string
	baseKindErrors       []string
	health, healthReason string
	healthMessage        string
	deletionsObserved    bool
	deletionsErr         error
	deletionChecks       int
	statuses             []target.ResourceStatus // replaces state, message and reason
	labelled             target.Count            // pods that belong to no resource
	transitions          []target.HealthTransition
	blockDeletionChecks  bool
	reportedAgain        []string
	ended                []string // the instances that are no longer watched, and why
}

func (f *fakeReporter) set(change func(*fakeReporter)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeReporter) ResourceStatuses(workload string) (statuses []target.ResourceStatus, pods target.Count) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if statuses = slices.Clone(f.statuses); statuses == nil {
		wl, _ := f.targets.Workload(workload)
		for _, r := range wl.Resources {
			statuses = append(statuses, target.ResourceStatus{Resource: r, State: f.state, Message: f.message, Health: "Healthy", Reason: f.reason})
		}
	}
	pods = f.labelled
	for _, s := range statuses {
		pods.Total += s.Pods.Total
		pods.Healthy += s.Pods.Healthy
	}
	return statuses, pods
}

func (f *fakeReporter) ReportAgain(workload string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reportedAgain = append(f.reportedAgain, workload)
}

func (f *fakeReporter) BaseKindErrors() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.baseKindErrors)
}

func (f *fakeReporter) Health(string) (status, reason, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health, f.healthReason, f.healthMessage
}

func (f *fakeReporter) RecordTransition(_ string, transition target.HealthTransition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.transitions = append(f.transitions, transition)
}

func (f *fakeReporter) EndWatch(_ string, instance target.Instance, cause string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, fmt.Sprintf("%s: %s", instance, cause))
}

func (f *fakeReporter) DeletionsObserved(ctx context.Context, _ string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deletionChecks++
	if f.blockDeletionChecks {
		<-ctx.Done()
		return false, ctx.Err()
	}
	return f.deletionsObserved, f.deletionsErr
}

// fakeDelivery is a Delivery and a State with settable answers.
type fakeDelivery struct {
	mu         sync.Mutex
	progress   target.DeliveryProgress
	forgot     []target.Instance
	retried    []target.Instance
	declared   []target.Instance
	isDeclared []func(target.Instance) bool // of the calls of EndUndeclared
	durableErr error
	notSynced  bool
}

func (f *fakeDelivery) set(p target.DeliveryProgress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress = p
}

func (f *fakeDelivery) Progress(i target.Instance) target.DeliveryProgress {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.progress
	p.Synced = !f.notSynced && slices.Contains(f.declared, i)
	return p
}

func (f *fakeDelivery) Declare(i target.Instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.declared = append(f.declared, i)
}

func (f *fakeDelivery) ForgetInstance(i target.Instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot = append(f.forgot, i)
}

func (f *fakeDelivery) EndUndeclared(declared func(target.Instance) bool, _ string, _ time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isDeclared = append(f.isDeclared, declared)
}

func (f *fakeDelivery) RetryRejected(i target.Instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retried = append(f.retried, i)
}

func (f *fakeDelivery) Durable() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return true, f.durableErr
}

func (f *fakeDelivery) forgotten() []target.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.forgot)
}

// world is a reconciler with a fake reporter, a fake delivery and a clock that a test moves.
type world struct {
	*testing.T
	reconciler *Reconciler
	targets    *target.Registry
	reporter   *fakeReporter
	delivery   *fakeDelivery
	lists      *ResourceLists
	clock      time.Time
	writes     *atomic.Int64 // of statuses: accepted by the API server, or still without an answer
	failPatch  *atomic.Bool  // fails patches of the main resource
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, targets: target.NewRegistry(), delivery: &fakeDelivery{}, lists: NewResourceLists(math.MaxInt64), writes: &atomic.Int64{}, failPatch: &atomic.Bool{},
		// The clocks of the API server and of the agent may differ.
		clock: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC),
	}
	w.reporter = &fakeReporter{targets: w.targets, state: target.Present, health: "Healthy", deletionsObserved: true}
	w.reconciler = New(w.counting(shared.client), lister{shared.client}, w.lists, w.targets, w.delivery, w.delivery)
	w.reconciler.SetReporter(w.reporter)
	w.reconciler.now = func() time.Time { return w.clock }
	return w
}

// lister may list objects, and not get one, as the role of the agent permits it.
type lister struct{ client.Reader }

func (lister) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("get is forbidden")
}

// cacheOptions are those of the agent's cache.
func (w *world) cacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{&v1alpha1.ThreeportWorkload{}: {Transform: w.lists.Transform}}}
}

// counting counts the status writes through a client. Its reads are like those from the agent's cache.
func (w *world) counting(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			_, err := w.lists.Transform(obj)
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes.Add(1)
			err := c.SubResource(sub).Patch(ctx, obj, p, opts...)
			if err != nil { // nothing was written
				w.writes.Add(-1)
			}
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if w.failPatch.Load() {
				return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("threeportworkloads").GroupResource(), obj.GetName(), nil)
			}
			return c.Patch(ctx, obj, p, opts...)
		},
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

var lastID atomic.Int64

// workload returns a ThreeportWorkload that lists ConfigMaps.
func workload(name string, configMaps ...string) *v1alpha1.ThreeportWorkload {
	wl := &v1alpha1.ThreeportWorkload{}
	wl.Name = name
	wl.Spec.WorkloadType = v1alpha1.WorkloadTypeInstance
	wl.Spec.WorkloadInstanceID = 877588458330128385 + lastID.Add(1)
	for _, c := range configMaps {
		wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
			Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: c, ThreeportID: 877588458330128385 + lastID.Add(1),
		})
	}
	return wl
}

// create stores a workload, and removes it at the end of the test.
func (w *world) create(wl *v1alpha1.ThreeportWorkload) {
	w.Helper()
	timedOut := false
	w.must(retryTimeouts(func() error {
		err := shared.client.Create(w.Context(), wl)
		if timedOut && apierrors.IsAlreadyExists(err) {
			return shared.client.Get(w.Context(), client.ObjectKeyFromObject(wl), wl)
		}
		timedOut = apierrors.IsTimeout(err)
		return err
	}))
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		stored := &v1alpha1.ThreeportWorkload{ObjectMeta: metav1.ObjectMeta{Name: wl.Name}}
		strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		for _, remove := range []func() error{
			func() error { return shared.client.Patch(ctx, stored, strip) },
			func() error { return shared.client.Delete(ctx, stored) },
		} {
			if err := client.IgnoreNotFound(retryTimeouts(remove)); err != nil {
				w.Error(err)
			}
		}
	})
}

// retryTimeouts repeats a request while it times out, as one with a large workload may on a busy machine.
func retryTimeouts(request func() error) error {
	for {
		if err := request(); !apierrors.IsTimeout(err) {
			return err
		}
	}
}

// stored reads a workload from the API server; nil if there is none.
func (w *world) stored(name string) *v1alpha1.ThreeportWorkload {
	w.Helper()
	wl := &v1alpha1.ThreeportWorkload{}
	err := shared.client.Get(w.Context(), types.NamespacedName{Name: name}, wl)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return wl
}

// reconcile reconciles a workload until the next step is due later.
func (w *world) reconcile(name string) ctrl.Result {
	w.Helper()
	for {
		var result ctrl.Result
		w.must(retryTimeouts(func() (err error) {
			result, err = w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
			return err
		}))
		if result.RequeueAfter != nextStepDelay {
			return result
		}
	}
}

// expectEnded fails the test unless these instances are reported as no longer watched.
func (w *world) expectEnded(want ...string) {
	w.Helper()
	if !slices.Equal(w.reporter.ended, want) {
		w.Errorf("no longer watched are %q, want %q", w.reporter.ended, want)
	}
}

// expectEmpty fails the test if the reconciler still has state of a workload.
func (w *world) expectEmpty() {
	w.Helper()
	if !w.targets.Empty() || w.reconciler.states.count() > 0 {
		w.Errorf("the registry still has workloads %v, and the reconciler %d states; want none", w.targets.WorkloadNames(), w.reconciler.states.count())
	}
}
