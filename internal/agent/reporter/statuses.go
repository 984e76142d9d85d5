package reporter

import (
	"context"
	"slices"
	"sync"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/assess"
	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// completeness reports whether the API server has answered for all that workloads list.
type completeness interface {
	Complete([]target.Workload) bool
}

// statusReporter reports the statuses and trees of instances, and the transitions of workloads. One worker calls
// reconcile, so that no report follows the withdrawal of an instance's reports.
type statusReporter struct {
	targets     *target.Registry
	cluster     completeness
	assessor    *assess.Assessor
	sink        Sink
	filters     *filter.Live
	transitions *transitions
	queues      *queues
	changed     func(workload string)

	ended watchEnds

	// instances are those of the reconciled workloads. They belong to the worker.
	instances map[string]target.Instance
}

// watchEnds has the last statuses that are still to be offered.
type watchEnds struct {
	mu       sync.Mutex
	statuses map[target.Instance]observe.Status
}

func (w *watchEnds) add(end observe.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.statuses == nil {
		w.statuses = map[target.Instance]observe.Status{}
	}
	w.statuses[end.Workload] = end
}

// takeAll returns the statuses, and removes them.
func (w *watchEnds) takeAll() map[target.Instance]observe.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.statuses
	w.statuses = nil
	return all
}

// workloadsDeclared queues the workloads that are new, changed or gone since an earlier call, which returned before.
func (r *statusReporter) workloadsDeclared(before map[string]target.Workload) map[string]target.Workload {
	declared := map[string]target.Workload{}
	for _, name := range r.targets.WorkloadNames() {
		wl, ok := r.targets.Workload(name)
		if !ok {
			continue
		}
		declared[name] = wl
		if old, ok := before[name]; !ok || old.Instance != wl.Instance || !slices.Equal(old.Resources, wl.Resources) {
			r.assessor.TreeChanged(wl.Instance)
			r.queues.statusLater(name)
		}
	}
	for _, name := range r.assessor.Workloads() {
		if _, ok := declared[name]; !ok {
			r.queues.statuses.Add(name)
		}
	}
	for name, old := range before {
		if _, ok := declared[name]; ok {
			continue
		}
		r.queues.statuses.Add(name)
		r.assessor.TreeChanged(old.Instance)
		for _, other := range r.targets.WorkloadsOf(old.Instance) { // the other workloads of the instance
			r.queues.statusLater(other.Name)
		}
	}
	return declared
}

// reconcile brings the reports about a workload up to date:
//
//   - If the workload is declared, it offers the status and the tree of the instance, and wakes the controller.
//   - If the workload is gone, it drops the verdicts and the transition.
//   - If the instance has changed or the workload is gone, it withdraws the reports of an instance without workloads.
//   - It offers all last statuses that wait, except those of instances that are declared again.
func (r *statusReporter) reconcile(ctx context.Context, workload string) error {
	ctx = r.queues.samples.statuses.take(ctx, workload)
	if wl, ok := r.targets.Workload(workload); ok {
		r.moveTo(workload, wl.Instance)
		r.report(ctx, workload, wl.Instance)
	}
	_, declared := r.targets.Workload(workload)
	if !declared {
		r.moveTo(workload, target.Instance{})
		r.assessor.ForgetWorkload(workload)
		r.forgetTransition(workload)
	}
	for instance, end := range r.ended.takeAll() {
		if len(r.targets.WorkloadNamesOf(instance)) == 0 { // else it was declared again
			offer(ctx, r.sink, end)
		}
	}
	if declared {
		r.changed(workload)
	}
	return nil
}

// endWatch reports that a workload no longer declares an instance, and no other workload does. The worker offers it, so that no
// other status of the instance follows.
func (r *statusReporter) endWatch(workload string, end observe.Status) {
	r.ended.add(end)
	r.queues.statuses.Add(workload)
}

// moveTo records the instance of a workload; zero for none. It withdraws the reports of the workload's former instance if
// no other workload declares that instance.
func (r *statusReporter) moveTo(workload string, instance target.Instance) {
	before, known := r.instances[workload]
	if instance == (target.Instance{}) {
		delete(r.instances, workload)
	} else {
		r.instances[workload] = instance
	}
	if !known || before == instance {
		return
	}
	workloads := r.targets.WorkloadsOf(before)
	for _, other := range workloads { // one of them withdraws the reports when it is gone, too
		r.moveTo(other.Name, before) // it may have had another instance
		r.queues.statusLater(other.Name)
	}
	if len(workloads) > 0 {
		return
	}
	r.sink.ForgetExcept(observe.SubjectOf(observe.Status{Workload: before}))
	r.sink.ForgetExcept(observe.SubjectOf(observe.Tree{Workload: before}))
	r.assessor.ForgetInstance(before)
}

func (r *statusReporter) report(ctx context.Context, workload string, instance target.Instance) {
	if recheck := r.assessor.Note(workload); recheck > 0 {
		r.queues.statuses.AddAfter(workload, recheck)
	}
	status, known := r.assessor.Status(instance)
	if !known {
		return
	}
	if due, wait := r.assessor.AdmitStatus(status); wait > 0 {
		r.queues.samples.statuses.move(ctx, workload)
		r.queues.statuses.AddAfter(workload, wait)
	} else {
		offer(ctx, r.sink, due)
	}
	r.reportTree(ctx, workload, instance)
}

// reportTree offers the tree of an instance if it has changed and is due. An object that is missing from a tree counts as
// deleted, so no tree is offered before all its kinds are listed.
func (r *statusReporter) reportTree(ctx context.Context, workload string, instance target.Instance) {
	if !r.cluster.Complete(r.targets.WorkloadsOf(instance)) {
		return
	}
	due, wait := r.assessor.AdmitTree(instance)
	switch {
	case due:
		tree := r.assessor.BuildTree(instance)
		if r.filters != nil {
			tree = filterTree(tree, r.filters.DecideObject)
		}
		offer(ctx, r.sink, tree)
	case wait > 0:
		r.queues.samples.statuses.move(ctx, workload)
		r.queues.statuses.AddAfter(workload, wait)
	}
}

// treeChanged queues a workload whose instance's tree has changed.
func (r *statusReporter) treeChanged(workload string, instance target.Instance) {
	if r.assessor.TreeChanged(instance) {
		r.queues.statusLater(workload)
	}
}

// recordTransition reports a transition as an Event, in place of the transition before.
func (r *statusReporter) recordTransition(workload string, change target.HealthTransition) {
	wl, ok := r.targets.Workload(workload)
	if !ok || change.UID == "" || change.To == "" || change.At.IsZero() {
		return
	}
	ref := target.Ref{Group: v1alpha1.GroupVersion.Group, Kind: "ThreeportWorkload", Name: workload}
	ev := observe.NewTransition(ref, wl.Instance, change)
	before, known := r.transitions.set(workload, transition{ev, change.Cause})
	r.sink.Offer(ev)
	r.sink.ForgetExcept(observe.SubjectOf(ev), ev.Key())
	if known && before.InvolvedUID != ev.InvolvedUID { // the ThreeportWorkload was created again
		r.sink.ForgetExcept(observe.SubjectOf(before.Event))
	}
	if before.cause != change.Cause || r.assessor.SinceDiffers(wl.Instance, change.To, ev.Time) {
		r.queues.statusLater(workload)
	}
}

func (r *statusReporter) forgetTransition(workload string) {
	if before, ok := r.transitions.remove(workload); ok {
		r.sink.ForgetExcept(observe.SubjectOf(before.Event))
	}
}
