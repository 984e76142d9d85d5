package reporter

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/threeport/threeport-agent/internal/agent/assess"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

var podKind = schema.GroupKind{Kind: "Pod"}

// objectReporter reports objects as operations, and has them assessed.
type objectReporter struct {
	targets    *target.Registry
	informers  *informers.Informers
	assessor   *assess.Assessor
	sink       Sink
	attributed *attributedObjects
	queues     *queues
	statuses   *statusReporter
	redaction  observe.Redaction
	now        func() time.Time
}

// reconcile reports the objects of a name: first the deleted ones, then the existing one.
func (r *objectReporter) reconcile(ctx context.Context, ref target.Ref) error {
	ctx = r.queues.samples.objects.take(ctx, ref)
	deleted, current, exists := r.informers.Incarnations(ref)
	r.reportDeletions(ctx, deleted)
	var attributions []target.Attribution
	var failed error
	if exists {
		r.informers.LookUpOwners(r.targets.UnresolvedOwners(current))
		attributions = r.targets.Attributions(current)
	}
	var cached metav1.Object
	for _, sameVersion := range byAPIVersion(attributions) {
		var err error
		cached, err = r.report(ctx, current, sameVersion)
		failed = errors.Join(failed, err)
	}
	r.withdrawOthers(current, ref, attributions)
	pod, isPod := cached.(*corev1.Pod)
	if !isPod { // it belongs to no workload, or a report could not be made
		pod, isPod = r.pod(current)
	}
	if isPod {
		r.reportTerminations(ctx, pod, current, attributions)
	}
	return failed
}

// reportDeletions reports tombstones. A tombstone of an object whose workload may not be declared yet, after a restart,
// stays.
func (r *objectReporter) reportDeletions(ctx context.Context, tombstones []informers.Tombstone) {
	for _, tombstone := range tombstones {
		attributions := r.targets.Attributions(tombstone.Identity)
		if len(attributions) == 0 && r.attributed.isRecorded(tombstone.UID) {
			continue
		}
		r.reportDeletion(ctx, tombstone, attributions)
		r.informers.DeletionReported(tombstone.Identity)
	}
}

// reportDeletion reports a deletion to every workload that the object belonged to.
func (r *objectReporter) reportDeletion(ctx context.Context, deleted informers.Tombstone, attributions []target.Attribution) {
	if known, ok := r.targets.Object(deleted.UID); ok {
		r.attributed.recordDeletion(known, r.now())
	}
	r.sink.ForgetExcept(observe.SyntheticSubject(deleted.UID))
	r.informers.ForgetObject(deleted.UID)
	reported := newAttributionSet(attributions)
	r.attributed.removeExcept(deleted.Ref, func(o attributedObject) bool {
		return o.Identity != deleted.Identity || !reported.has(o.Attribution)
	})
	for _, attribution := range attributions {
		offer(ctx, r.sink, observe.Operation{
			Attribution: attribution, Object: deleted.Identity, ResourceVersion: deleted.ResourceVersion, Deleted: true,
		})
		r.assessor.Remove(attribution, deleted.Identity)
		r.healthChanged(attribution)
		if attribution.Listed {
			r.statuses.changed(attribution.Workload)
		}
	}
}

// byAPIVersion groups the attributions of an object by the API version in which they list it. Derived objects have one group.
func byAPIVersion(attributions []target.Attribution) [][]target.Attribution {
	groups := make([][]target.Attribution, 0, 1)
	for _, attribution := range attributions {
		i := slices.IndexFunc(groups, func(group []target.Attribution) bool {
			return group[0].Listed == attribution.Listed && group[0].Resource.Version == attribution.Resource.Version
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], attribution)
	}
	return groups
}

// report offers the newest version of an object to workloads, and has it assessed. The workloads list it in the same API version, or it
// is derived: it is read and judged once for all. It returns the cached object; nil if it is not visible or cannot be read. Its reports may
// be offered already then.
func (r *objectReporter) report(ctx context.Context, current target.Identity, attributions []target.Attribution) (metav1.Object, error) {
	found, err := r.operation(ctx, current, attributions[0])
	if found.cached == nil {
		return nil, err
	}
	op, cached := found.Operation, found.cached
	added := false
	for _, attribution := range attributions {
		if r.attributed.add(attributedObject{attribution, current}) {
			r.statuses.treeChanged(attribution.Workload, attribution.Instance)
			added = true
		}
		op.Attribution = attribution
		offer(ctx, r.sink, op)
	}
	if added {
		for _, known := range r.targets.ObjectWithOwners(current.UID) {
			r.attributed.record(known)
		}
	}
	if op, err = op.Load(ctx); err != nil {
		return nil, err
	}
	r.assess(assess.Object{
		Identity: current, Cached: cached, Whole: op.Body, Warning: r.latestWarning(current),
	}, attributions)
	return cached, nil
}

// assess has an object judged, and keeps the verdict for each workload. A verdict that ends by itself is repeated then.
func (r *objectReporter) assess(o assess.Object, attributions []target.Attribution) {
	judged := r.assessor.Judge(o, attributions[0].Listed)
	if judged == nil {
		return
	}
	if !judged.Recheck.IsZero() {
		r.queues.objects.AddAfter(o.Ref, max(judged.Recheck.Sub(r.now()), r.queues.statusDelay))
	}
	for _, attribution := range attributions {
		switch change := r.assessor.Keep(attribution, judged); {
		case change.Assessment:
			r.healthChanged(attribution)
		case change.Facts:
			r.statuses.treeChanged(attribution.Workload, attribution.Instance)
		}
		if attribution.Listed {
			r.statuses.changed(attribution.Workload)
		}
	}
}

func (r *objectReporter) healthChanged(attribution target.Attribution) {
	r.queues.statusLater(attribution.Workload)
	r.statuses.treeChanged(attribution.Workload, attribution.Instance)
}

// latestWarning returns the latest Event of type Warning about an object.
func (r *objectReporter) latestWarning(id target.Identity) health.Warning {
	var latest health.Warning
	r.informers.EachWarning(id.UID, func(ev *corev1.Event) {
		if !observe.IsAbout(ev, id) {
			return
		}
		if at := observe.EventTime(ev); at.After(latest.Time) {
			latest = health.Warning{Reason: ev.Reason, Message: ev.Message, Time: at}
		}
	})
	return latest
}

// currentOperation is the report of the newest version of an object to one workload.
type currentOperation struct {
	observe.Operation
	cached  metav1.Object // nil if the object is not visible yet, or no longer
	fetched bool          // the object was read from the API server for this
}

// operation returns the report of the newest version of an object to one workload.
func (r *objectReporter) operation(
	ctx context.Context, current target.Identity, attribution target.Attribution,
) (currentOperation, error) {
	op := currentOperation{Operation: observe.Operation{Attribution: attribution, Object: current}}
	object, ok := r.informers.Object(current, attribution)
	if !ok {
		return op, nil
	}
	op.ResourceVersion = object.GetResourceVersion()
	if attribution.Listed {
		whole, exists, err := r.informers.WholeObject(ctx, current, object)
		if !exists {
			return op, err
		}
		op.ResourceVersion, op.Body, op.Source, op.fetched = whole.ResourceVersion, whole.Body, whole.Source, whole.Fetched
		op.Redaction = r.redaction
	}
	op.cached = object.Object
	return op, nil
}

// attributionSet is a set of attributions. Most objects have one, so a map would cost more than it saves; others have hundreds.
type attributionSet struct {
	few  []target.Attribution
	many sets.Set[target.Attribution]
}

func newAttributionSet(attributions []target.Attribution) attributionSet {
	const few = 8
	if len(attributions) <= few {
		return attributionSet{few: attributions}
	}
	return attributionSet{many: sets.New(attributions...)}
}

func (s attributionSet) has(a target.Attribution) bool {
	return s.many.Has(a) || slices.Contains(s.few, a)
}

// withdrawOthers withdraws the operations of a name whose attributions no longer hold. An attributed object that could not
// be read keeps its operation.
func (r *objectReporter) withdrawOthers(current target.Identity, ref target.Ref, attributions []target.Attribution) {
	if !slices.ContainsFunc(attributions, func(c target.Attribution) bool { return c.Listed }) {
		r.informers.ForgetObject(current.UID)
	}
	holds := newAttributionSet(attributions)
	kept, removed := r.attributed.removeExcept(ref, func(o attributedObject) bool {
		return o.Identity == current && holds.has(o.Attribution)
	})
	if len(removed) == 0 {
		return
	}
	keys := make([]observe.Key, len(kept))
	for i, o := range kept {
		keys[i] = o.operation().Key()
	}
	for _, old := range removed {
		if !slices.ContainsFunc(kept, old.sameResource) {
			r.assessor.Remove(old.Attribution, old.Identity)
			r.healthChanged(old.Attribution)
		}
		r.sink.ForgetExcept(observe.SubjectOf(old.operation()), keys...)
		if !slices.ContainsFunc(kept, func(o attributedObject) bool { return o.UID == old.UID }) {
			r.sink.DropRejected(observe.SyntheticSubject(old.UID))
			r.sink.ForgetExcept(observe.SyntheticSubject(old.UID)) // the cache may no longer have the pod
		}
	}
}

// pod returns a Pod from the cache.
func (r *objectReporter) pod(id target.Identity) (*corev1.Pod, bool) {
	if id.UID == "" || id.GroupKind() != podKind {
		return nil, false
	}
	object, ok := r.informers.Object(id, target.Attribution{})
	if !ok {
		return nil, false
	}
	pod, ok := object.Object.(*corev1.Pod)
	return pod, ok
}
