package watch

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/observe"
	"github.com/threeport/threeport-agent/internal/target"
)

func (w *Watcher) eventHandler() cache.ResourceEventHandler {
	mark := func(obj any) {
		if ev, ok := obj.(*corev1.Event); ok {
			w.events.Add(types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    mark,
		UpdateFunc: func(_, obj any) { mark(obj) },
		DeleteFunc: func(obj any) {
			// It has expired, mostly. Its row stays; nothing more will come of it.
			if o, err := unwrap(obj); err == nil {
				w.forgetEvent(o.GetUID())
			}
		},
	}
}

// reconcileEvent reports the newest version of an Event if its object belongs to a workload. If it does not
// yet, the Event stays in the informer's store, and is marked again when that changes.
func (w *Watcher) reconcileEvent(_ context.Context, key types.NamespacedName) error {
	ref := target.Ref{Kind: eventKind.Kind, Namespace: key.Namespace, Name: key.Name}
	inf, ok := w.pool.find(nil, ref)
	if !ok {
		return nil
	}
	cached, ok := inf.object(ref)
	if !ok {
		return nil
	}
	ev, ok := cached.(*corev1.Event)
	if !ok {
		return nil
	}
	claim, ok := w.claimOnEvent(observe.InvolvedObject(ev))
	if !ok {
		w.sink.Withdraw(observe.EventKey(ev.UID))
		return nil
	}
	w.mu.Lock()
	w.told[ev.UID] = key
	w.mu.Unlock()
	w.sink.Offer(observe.NewEvent(ev, claim))
	return nil
}

func (w *Watcher) forgetEvent(uid types.UID) {
	w.mu.Lock()
	delete(w.told, uid)
	w.mu.Unlock()
	w.sink.Forget(observe.EventKey(uid))
}

// forgetExpired forgets the Events that expired while nothing watched: those that were offered and that the
// first list of an informer does not have.
func (w *Watcher) forgetExpired(i *informer) {
	w.mu.Lock()
	told := maps.Clone(w.told)
	w.mu.Unlock()
	for uid, name := range told {
		if i.id.namespace != "" && i.id.namespace != name.Namespace {
			continue
		}
		cached, _ := i.object(target.Ref{Namespace: name.Namespace, Name: name.Name})
		if ev, ok := cached.(*corev1.Event); !ok || ev.UID != uid {
			w.forgetEvent(uid)
		}
	}
}

// claimOnEvent returns to which workload the Events about an object go. An Event has one row, so if several
// workloads claim the object, the first does.
func (w *Watcher) claimOnEvent(involved target.Identity) (target.Claim, bool) {
	if known, ok := w.targets.Lookup(involved.UID); ok {
		for _, claim := range w.targets.Claims(known) {
			return claim, true
		}
		w.lookups.want(w.targets.Missing(known))
		return target.Claim{}, false
	}
	for _, claim := range w.targets.ClaimsOfName(involved) {
		// Whether another object bears the name is not known before the kind has synced.
		if w.sight(claim.Resource).State != target.Pending {
			return claim, true
		}
	}
	if involved.UID != "" {
		w.lookups.want([]target.Identity{involved})
	}
	return target.Claim{}, false
}
