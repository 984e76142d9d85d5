package informers

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// registrar records in the registry which objects exist, and passes changes of attributed objects and of Events on.
type registrar struct {
	targets    *target.Registry
	tombstones *tombstones
	lookups    *lookups
	handler    Handler
}

// handlerFor returns the event handler of an informer. It does not block, and calls failed if the informer cannot go on.
func (r *registrar) handlerFor(i *informer, failed func(error)) cache.ResourceEventHandler {
	if i.gvk == eventKind {
		return r.eventHandler()
	}
	kind := i.gvk.GroupKind()
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if name, err := cachedName(obj); err == nil && (name.Namespace != "") != i.id.namespaced {
				failed(errScopeChanged)
				return
			}
			r.upsert(kind, obj)
		},
		UpdateFunc: func(before, obj any) {
			if cachedVersion(before).uid != cachedVersion(obj).uid { // the informer missed the deletion in between
				r.deleted(kind, before)
			}
			r.upsert(kind, obj)
		},
		DeleteFunc: func(obj any) { r.deleted(kind, obj) },
	}
}

func (r *registrar) eventHandler() cache.ResourceEventHandler {
	changed := func(obj any) {
		if ev, ok := obj.(*cachedEvent); ok {
			r.handler.EventChanged(ev.name())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) {
			if ev, ok := obj.(*cachedEvent); ok {
				r.handler.EventDeleted(ev.event())
			}
		},
	}
}

// upsert records an object, and passes it on if it is attributed to a workload.
func (r *registrar) upsert(kind schema.GroupKind, obj any) {
	o, err := metadataOf(obj)
	if err != nil {
		return // every object in a store has metadata
	}
	found := objectOf(kind, o)
	if !r.tombstones.upsert(found) {
		return
	}
	if len(r.targets.Attributions(found.Identity)) > 0 {
		r.handler.ObjectChanged(found.Ref)
	}
	r.lookups.add(r.targets.UnresolvedOwners(found.Identity))
}

// deleted keeps a tombstone of an object that an informer saw deleted.
func (r *registrar) deleted(kind schema.GroupKind, obj any) {
	if o, err := meta.Accessor(obj); err == nil {
		r.delete(identityOf(kind, o), o.GetResourceVersion(), true)
	}
}

// delete keeps a tombstone, and passes it on. version is the last known version; empty if none is known.
func (r *registrar) delete(id target.Identity, version string, certain bool) {
	if r.tombstones.add(id, version, certain) {
		r.handler.ObjectChanged(id.Ref)
	}
}

// listed is called when the handler has received the first list of an informer. It deletes the known objects that were
// deleted while no informer watched them. They are missing from that list, and from the caches of the other informers of the
// kind, which may be ahead of it.
func (r *registrar) listed(i *informer, running []*informer) {
	if i.gvk == eventKind {
		r.handler.EventsListed()
		return
	}
	caches := slices.DeleteFunc(running, func(other *informer) bool {
		synced := other.gvk.GroupKind() == i.gvk.GroupKind() && other.hasSynced() && other.err() == nil
		return other != i && !synced
	})
	for _, id := range r.targets.ExistingObjects(i.gvk.GroupKind(), i.id.namespace) {
		exists := slices.ContainsFunc(caches, func(inf *informer) bool {
			o, err := meta.Accessor(inf.object(id.Ref))
			return err == nil && o.GetUID() == id.UID
		})
		if !exists {
			r.delete(id, "", false)
		}
	}
}

// deleteKind deletes all known objects of a kind that the API server no longer serves.
func (r *registrar) deleteKind(kind schema.GroupKind) {
	for _, id := range r.targets.ExistingObjects(kind, metav1.NamespaceAll) {
		r.delete(id, "", false)
	}
}

func identityOf(kind schema.GroupKind, o metav1.Object) target.Identity {
	return target.Identity{Ref: refOf(kind, o), UID: o.GetUID()}
}

func refOf(kind schema.GroupKind, o metav1.Object) target.Ref {
	return target.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// objectOf returns what the registry keeps of an object. The controlling owner comes first. The cache keeps a listed object with
// all its owners, so the limit applies here too.
func objectOf(kind schema.GroupKind, o metav1.Object) target.Object {
	out := target.Object{Identity: identityOf(kind, o), DropsEvents: o.GetAnnotations()[v1alpha1.AnnotationEvents] == v1alpha1.EventsDrop}
	for _, ref := range limitOwners(o.GetOwnerReferences()) {
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
	for _, l := range instanceTypes { // in a fixed order: another order would be a change of the object
		if id, err := strconv.ParseInt(o.GetLabels()[l.label], 10, 64); err == nil && id > 0 {
			out.Instances = append(out.Instances, target.Instance{Type: l.typ, ID: id})
		}
	}
	return out
}

var instanceTypes = []struct {
	label string
	typ   target.Type
}{
	{v1alpha1.LabelWorkloadInstance, target.WorkloadInstance},
	{v1alpha1.LabelHelmWorkloadInstance, target.HelmWorkloadInstance},
}

// instanceLabels returns the labels that name a workload instance; nil if there are none.
func instanceLabels(labels map[string]string) map[string]string {
	var out map[string]string
	for _, l := range instanceTypes {
		if value, ok := labels[l.label]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[l.label] = value
		}
	}
	return out
}

// eventsAnnotation returns the annotation that drops the Events of an object; nil if there is none.
func eventsAnnotation(annotations map[string]string) map[string]string {
	if annotations[v1alpha1.AnnotationEvents] != v1alpha1.EventsDrop {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationEvents: v1alpha1.EventsDrop}
}
