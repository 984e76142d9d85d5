package informers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func (w *Watcher) eventHandler() cache.ResourceEventHandler {
	mark := func(obj any) {
		if ev, ok := obj.(*corev1.Event); ok {
			w.events.Add(types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name})
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if ev, ok := obj.(*corev1.Event); ok && isInInitialList {
				w.mu.Lock()
				w.early[ev.UID] = struct{}{}
				w.mu.Unlock()
			}
			mark(obj)
		},
		UpdateFunc: func(_, obj any) { mark(obj) },
		DeleteFunc: func(obj any) {
			// It has expired, mostly. Its row stays; nothing more will come of it.
			if o, err := unwrap(obj); err == nil {
				w.forgetEvent(o.GetUID())
				if ev, ok := o.(*corev1.Event); ok {
					w.warned(ev)
				}
			}
		},
	}
}

// reconcileEvent reports the newest version of an Event if its object belongs to a workload. If it does not
// yet, the Event stays in the informer's store, and is marked again when that changes.
func (w *Watcher) reconcileEvent(_ context.Context, key types.NamespacedName) error {
	ev, inf := w.cachedEvent(key)
	if ev == nil {
		return nil
	}
	claim, ok := w.claimOn(key, ev)
	if !ok {
		w.sink.Cancel(observe.EventKey(ev.UID))
		return nil
	}
	if w.told.add(ev.UID, key, claim.Instance) {
		w.memory.event(ev.UID, key)
	}
	w.sink.Offer(w.eventReport(ev, inf, claim))
	w.warned(ev)
	return nil
}

// cachedEvent returns an Event, and the informer that sees it; nil if none does.
func (w *Watcher) cachedEvent(key types.NamespacedName) (*corev1.Event, *informer) {
	ref := target.Ref{Kind: eventKind.Kind, Namespace: key.Namespace, Name: key.Name}
	inf, ok := w.pool.find(nil, ref)
	if !ok {
		return nil, nil
	}
	cached, _ := inf.object(ref)
	ev, _ := cached.(*corev1.Event)
	return ev, inf
}

// eventReport returns the report of an Event because of a claim.
func (w *Watcher) eventReport(ev *corev1.Event, inf *informer, claim target.Attribution) observe.Event {
	report := observe.NewEvent(ev, claim)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !inf.hasSynced() { // it is in the first list, of which the handler has still to tell
		w.early[ev.UID] = struct{}{}
	}
	_, report.Preexisting = w.early[ev.UID]
	return report
}

func (w *Watcher) forgetEvent(uid types.UID) {
	w.told.remove(uid)
	w.mu.Lock()
	delete(w.early, uid)
	w.mu.Unlock()
	w.memory.forgetEvent(uid)
	w.sink.Forget(observe.EventKey(uid))
}

// forgetExpired forgets the Events that expired while nothing watched: those that were offered and that the
// first list of an informer does not have.
func (w *Watcher) forgetExpired(i *informer) {
	for uid, name := range w.told.in(i.id.namespace) {
		cached, _ := i.object(target.Ref{Namespace: name.Namespace, Name: name.Name})
		if ev, ok := cached.(*corev1.Event); !ok || ev.UID != uid {
			w.forgetEvent(uid)
		}
	}
}

// claimOn returns to which workload an Event goes, if to any yet.
func (w *Watcher) claimOn(key types.NamespacedName, ev *corev1.Event) (target.Attribution, bool) {
	if claim, ok := w.claimOnEvent(observe.InvolvedObject(ev), ev.CreationTimestamp.Time); ok {
		return claim, true
	}
	return w.claimOnUnseen(key, ev)
}

// claimOnEvent returns to which workload an Event about an object goes that was made at a time. An Event has one row, so
// if several workloads claim the object, the first gets it.
func (w *Watcher) claimOnEvent(involved target.Identity, at time.Time) (target.Attribution, bool) {
	if known, ok := w.targets.Lookup(involved.UID); ok {
		for _, claim := range w.targets.Attributions(known) {
			return claim, true
		}
		w.lookups.want(w.targets.UnresolvedOwners(known))
		return target.Attribution{}, false
	}
	for _, claim := range w.targets.AttributionsByName(involved, at) {
		// Whether another object bears the name is not known before the kind has synced.
		if w.sight(claim.Resource).State != target.Pending {
			return claim, true
		}
	}
	if involved.UID != "" {
		w.lookups.want([]target.Identity{involved})
	}
	return target.Attribution{}, false
}
