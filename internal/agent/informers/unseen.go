package informers

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// unseenAge is how old an Event is before its object, which no informer has told of, is held for one that came
// and went while nobody watched. Until then it may be that the Event came before its object, whose owners tell
// more than its name.
const unseenAge = 2 * time.Second

// claimOnUnseen returns to which workload an Event goes whose object came and went while nobody watched. The
// Event of an object that is listed, or was told of, has no claim here.
func (w *Watcher) claimOnUnseen(key types.NamespacedName, ev *corev1.Event) (target.Attribution, bool) {
	involved := observe.InvolvedObject(ev)
	if _, known := w.targets.Lookup(involved.UID); known || involved.UID == "" || !w.settled(involved.Namespace) {
		return target.Attribution{}, false
	}
	claim, ok := w.targets.InferOwner(involved.Ref)
	if !ok {
		return target.Attribution{}, false
	}
	// An age that is far below zero is the clocks', and tells nothing.
	if w.now().Sub(ev.CreationTimestamp.Time).Abs() < unseenAge {
		w.events.AddAfter(key, unseenAge)
		return target.Attribution{}, false
	}
	return claim, true
}

// settled reports whether all that exists in a namespace of the kinds that controllers make was told of, so that
// what is not known is gone.
func (w *Watcher) settled(namespace string) bool {
	for _, gvk := range baseKinds {
		state, _ := w.kindOf(gvk)
		if scope, ok := state.in(namespace); !ok || scope.state != target.Present {
			return false
		}
	}
	return true
}

// reviewLater has the Events about objects that are not known looked at again. It does not block.
func (w *Watcher) reviewLater() {
	select {
	case w.review <- struct{}{}:
	default:
	}
}

// reviewUnseen marks the Events about objects, of kinds that controllers make, that are not known. What makes a
// difference to them is not tied to their objects: what is declared, what is synced, and whose their makers are.
func (w *Watcher) reviewUnseen() {
	for _, key := range w.pool.eventsAboutUnknown(w.targets) {
		w.events.Add(key)
	}
}

// eventsAboutUnknown returns the Events about objects of the base kinds that a registry does not know.
func (p *pool) eventsAboutUnknown(targets *target.Registry) []types.NamespacedName {
	var out []types.NamespacedName
	for _, i := range p.all(func(i *informer) bool { return i.gvk.GroupKind() == eventKind.GroupKind() }) {
		for _, uid := range i.shared.GetIndexer().ListIndexFuncValues(indexByUID) {
			if _, known := targets.Lookup(types.UID(uid)); known {
				continue
			}
			about, err := i.shared.GetIndexer().ByIndex(indexByUID, uid)
			if err != nil {
				continue // an index that every informer of Events has
			}
			for _, obj := range about {
				if ev, ok := obj.(*corev1.Event); ok && isBase(observe.InvolvedObject(ev).Ref) {
					out = append(out, types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name})
				}
			}
		}
	}
	return out
}

func isBase(ref target.Ref) bool {
	return slices.ContainsFunc(baseKinds, func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == ref.GroupKind() })
}
