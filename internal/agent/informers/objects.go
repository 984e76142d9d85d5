package informers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// handler returns what an informer calls.
func (w *Watcher) handler(i *informer) cache.ResourceEventHandler {
	if i.gvk == eventKind {
		return w.eventHandler()
	}
	kind := i.gvk.GroupKind()
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { w.sawObject(kind, obj) },
		UpdateFunc: func(old, obj any) {
			was, err := meta.Accessor(old)
			is, err2 := meta.Accessor(obj)
			if err != nil || err2 != nil || was.GetResourceVersion() == is.GetResourceVersion() {
				return
			}
			if was.GetUID() != is.GetUID() { // the deletion in between was missed
				w.sawDeleted(identityOf(kind, was), was.GetResourceVersion(), true)
			}
			w.sawObject(kind, obj)
		},
		DeleteFunc: func(obj any) {
			if o, err := unwrap(obj); err == nil {
				w.sawDeleted(identityOf(kind, o), o.GetResourceVersion(), true)
			}
		},
	}
}

// sawObject files an object and marks it if somebody claims it.
func (w *Watcher) sawObject(kind schema.GroupKind, obj any) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return // the informers' stores hold nothing without metadata
	}
	found := objectOf(kind, o)
	if !w.graves.file(found) {
		return
	}
	if len(w.targets.Attributions(found.Identity)) > 0 {
		w.objects.Add(found.Ref)
	}
	w.lookups.want(w.targets.UnresolvedOwners(found.Identity))
}

// sawDeleted keeps a tombstone for a worker to report, with the last version that is known; empty if none is.
func (w *Watcher) sawDeleted(id target.Identity, version string, certain bool) {
	w.graves.sawVersion(id.UID, version)
	if w.graves.bury(id, certain) {
		w.objects.Add(id.Ref)
	}
}

// reconcileObject reports what bears a name: first what is gone, then what is there.
func (w *Watcher) reconcileObject(ctx context.Context, ref target.Ref) error {
	for _, id := range w.graves.of(ref) {
		claims := w.targets.Attributions(id)
		if len(claims) == 0 && w.memory.keeps(id.UID) {
			continue // it did belong to a workload, which is not declared yet
		}
		w.reportGone(id, claims)
		w.graves.reported(id)
	}

	var claims []target.Attribution
	var failed error
	current, ok := w.targets.Current(ref)
	if ok {
		w.lookups.want(w.targets.UnresolvedOwners(current))
		claims = w.targets.Attributions(current)
	}
	for _, claim := range claims {
		if err := w.report(ctx, current, claim); err != nil {
			failed = err
		}
	}
	w.withdrawOthers(current, ref, claims)
	if pod, ok := w.cachedPod(current); ok {
		if len(claims) > 0 {
			w.reportEnds(pod, current, claims[0])
		} else {
			w.withdrawEnds(current.UID)
		}
	}
	return failed
}

// reportGone tells every workload that an incarnation belonged to that it is deleted.
func (w *Watcher) reportGone(gone target.Identity, claims []target.Attribution) {
	for _, known := range w.targets.Known(gone.UID) {
		if known.UID == gone.UID {
			w.memory.deleted(known, time.Now())
		}
	}
	w.forgetEnds(gone.UID)
	w.bodies.drop(gone.UID)
	for _, claim := range claims {
		op := observe.Operation{Attribution: claim, Object: gone, ResourceVersion: w.graves.version(gone.UID), Deleted: true}
		w.sink.Offer(op)
		w.sink.Forget(op.Key())
		w.offers.remove(offer{claim, gone})
		w.board.drop(claim, gone)
		w.markStatus(claim.Workload)
		w.markTree(claim.Workload)
		if claim.Listed {
			w.changed(claim.Workload)
		}
	}
}

// report offers the newest version of an object to one workload, if there is something to be seen of it yet.
func (w *Watcher) report(ctx context.Context, current target.Identity, claim target.Attribution) error {
	op, cached, err := w.operation(ctx, current, claim)
	if cached == nil {
		return err
	}
	if w.offers.add(offer{claim, current}) {
		w.markTree(claim.Workload)
		for _, known := range w.targets.Known(current.UID) {
			w.memory.object(known)
		}
	}
	w.sink.Offer(op)
	w.judge(claim, current, op.Body, cached)
	if claim.Listed {
		w.changed(claim.Workload)
	}
	return nil
}

// operation returns the newest version of an object as one workload is to be told of it, and what the cache has of
// it; nil if there is nothing to be seen of the object yet, or no more.
func (w *Watcher) operation(ctx context.Context, current target.Identity, claim target.Attribution) (op observe.Operation, cached any, err error) {
	op = observe.Operation{Attribution: claim, Object: current}
	var gvr *schema.GroupVersionResource
	if claim.Listed {
		state, ok := w.kindOf(claim.Resource.GroupVersionKind())
		if !ok || state.gvr.Empty() {
			return op, nil, nil
		}
		gvr = &state.gvr
	}
	inf, ok := w.pool.find(gvr, current.Ref)
	if !ok {
		return op, nil, nil
	}
	cached, ok = inf.object(current.Ref)
	if !ok {
		return op, nil, nil
	}
	o, ok := cached.(metav1.Object)
	if !ok || o.GetUID() != current.UID {
		return op, nil, nil // a newer change is on its way
	}
	op.ResourceVersion = o.GetResourceVersion()
	if claim.Listed {
		body, err := w.body(ctx, inf, current, cached)
		if body == nil {
			return op, nil, err
		}
		op.Body, op.ResourceVersion = body, body.(metav1.Object).GetResourceVersion()
	}
	return op, cached, nil
}

// body returns a listed object as a whole: from the cache, or, if that keeps less of it, from the API
// server. It returns nil if the object is gone by then.
func (w *Watcher) body(ctx context.Context, i *informer, current target.Identity, cached any) (runtime.Object, error) {
	switch o := cached.(type) {
	case *unstructured.Unstructured:
		w.bodies.drop(current.UID)
		return o, nil
	case *metav1.PartialObjectMetadata:
		w.bodies.drop(current.UID)
		return o, nil
	}
	version := ""
	if o, ok := cached.(metav1.Object); ok {
		version = o.GetResourceVersion()
	}
	if kept, ok := w.bodies.get(current.UID, version); ok {
		return kept, nil
	}
	obj, err := w.clients.fetch(ctx, i.id.gvr, current.Ref)
	if errors.Is(err, errNoObject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.metrics.fetches.Inc()
	observe.Trim(obj)
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		partial.SetGroupVersionKind(i.gvk)
	}
	if o, err := meta.Accessor(obj); err != nil || o.GetUID() != current.UID {
		return nil, err
	}
	w.bodies.keep(current.UID, version, obj)
	return obj, nil
}

// withdrawOthers drops what was offered of a name before and is not to be any more, because nobody claims it.
// What is claimed and could not be read this time stays.
func (w *Watcher) withdrawOthers(current target.Identity, ref target.Ref, claims []target.Attribution) {
	if !slices.ContainsFunc(claims, func(c target.Attribution) bool { return c.Listed }) {
		w.bodies.drop(current.UID)
	}
	kept, dropped := w.offers.split(ref, func(o offer) bool { return o.object == current && slices.Contains(claims, o.claim) })
	for _, old := range dropped {
		if !slices.ContainsFunc(kept, func(o offer) bool { return o.standing() == old.standing() }) {
			w.board.drop(old.claim, old.object)
			w.markStatus(old.claim.Workload)
			w.markTree(old.claim.Workload)
		}
		if !slices.ContainsFunc(kept, func(o offer) bool { return o.key() == old.key() }) {
			w.sink.Cancel(old.key())
			w.sink.Forget(old.key())
		}
	}
}

func identityOf(kind schema.GroupKind, o metav1.Object) target.Identity {
	return target.Identity{Ref: refOf(kind, o), UID: o.GetUID()}
}

// objectOf returns what the registry keeps of an object.
func objectOf(kind schema.GroupKind, o metav1.Object) target.Object {
	out := target.Object{Identity: identityOf(kind, o)}
	for _, ref := range o.GetOwnerReferences() {
		owner := target.Identity{
			Ref: target.Ref{
				Group: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind,
				Namespace: o.GetNamespace(), Name: ref.Name,
			},
			UID: ref.UID,
		}
		if ref.Controller != nil && *ref.Controller {
			out.Owners = append([]target.Identity{owner}, out.Owners...)
		} else {
			out.Owners = append(out.Owners, owner)
		}
	}
	for label, typ := range instanceTypes {
		if id, err := strconv.ParseInt(o.GetLabels()[label], 10, 64); err == nil && id > 0 {
			out.Instances = append(out.Instances, target.Instance{Type: typ, ID: id})
		}
	}
	return out
}

var instanceTypes = map[string]target.Type{
	v1alpha1.LabelWorkloadInstance:     target.WorkloadInstance,
	v1alpha1.LabelHelmWorkloadInstance: target.HelmWorkloadInstance,
}

// instanceLabels returns the labels that name a workload; nil if there are none.
func instanceLabels(labels map[string]string) map[string]string {
	var out map[string]string
	for label := range instanceTypes {
		if value, ok := labels[label]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[label] = value
		}
	}
	return out
}
