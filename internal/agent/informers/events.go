package informers

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// CachedEvent is an Event in the cache.
type CachedEvent struct {
	*corev1.Event
	// Preexisting is true if the Event existed before its informer watched it.
	Preexisting bool
	// Shortened is true if the cache has only the beginning of a text. [Informers.WholeEvent] reads the Event whole.
	Shortened bool
}

// Event returns an Event from the cache; false if no cache has it.
func (s *Informers) Event(name types.NamespacedName) (CachedEvent, bool) {
	ref := target.Ref{Kind: eventKind.Kind, Namespace: name.Namespace, Name: name.Name}
	inf, ok := s.pool.find(nil, ref)
	if !ok {
		return CachedEvent{}, false
	}
	found, ok := inf.object(ref).(*cachedEvent)
	if !ok {
		return CachedEvent{}, false
	}
	common := found.common.Value()
	return CachedEvent{found.event(), common.preexisting, common.shortened}, true
}

// WholeEvent reads the newest version of an Event from the API server; nil if it does not exist. It takes part in the rate limit of
// look-ups.
func (s *Informers) WholeEvent(ctx context.Context, name types.NamespacedName) (*corev1.Event, error) {
	list, err := s.clients.lookups.typed.CoreV1().Events(name.Namespace).List(ctx, named(name.Name))
	if err != nil {
		return nil, fmt.Errorf("read Event %s: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// EventsAbout returns the names of the Events about an object: by its UID, or by its name if the identity has no UID.
func (s *Informers) EventsAbout(id target.Identity) []types.NamespacedName {
	var out []types.NamespacedName
	index, value := eventsAboutUID, string(id.UID)
	if id.UID == "" {
		index, value = eventsAboutName, id.String()
	}
	s.pool.eachEvent(index, value, anyEvent, func(ev *corev1.Event) { out = append(out, nameOf(ev)) })
	return out
}

// EachWarning visits the Events of type Warning about the object of a UID.
func (s *Informers) EachWarning(about types.UID, visit func(*corev1.Event)) {
	if about != "" {
		s.pool.eachEvent(eventsAboutUID, string(about), (*cachedEvent).isWarning, visit)
	}
}

// ExpiredEvents returns those of the known Events that no cache has. It returns false if caches may lack Events, because no informer of
// Events runs, or one lists, has failed, is about to be replaced, or lacks the permission. Its set of hashes takes a tenth of the UIDs'
// memory. An expired Event with the hash of a cached one is missing: with 42,000 cached ones, about one of a hundred thousand.
func (s *Informers) ExpiredEvents(known ...iter.Seq[types.UID]) (expired []types.UID, ok bool) {
	state, ok := s.kinds.stateOf(eventKind)
	if !ok {
		return nil, false
	}
	synced := map[string]bool{}
	cached := map[uint32]struct{}{}
	for _, i := range s.pool.eventInformers() {
		synced[i.id.namespace] = i.hasSynced()
		for _, obj := range i.store.list() {
			if ev, ok := obj.(*cachedEvent); ok {
				cached[hashOf(ev.metadata().UID)] = struct{}{}
			}
		}
	}
	for namespace, scope := range state.scopes {
		if scope.state != target.Present || !synced[namespace] {
			return nil, false
		}
	}
	for _, uids := range known {
		for uid := range uids {
			if _, exists := cached[hashOf(uid)]; !exists {
				expired = append(expired, uid)
			}
		}
	}
	return expired, true
}

// EventsAboutUnknownObjects returns the names of the Events about objects that the registry does not know. An object of a
// base kind may still arrive, and the look-up of another one may have been postponed. Events about other kinds are left out.
func (s *Informers) EventsAboutUnknownObjects() []types.NamespacedName {
	var out []types.NamespacedName
	for _, i := range s.pool.eventInformers() {
		for _, obj := range i.store.list() {
			cached, ok := obj.(*cachedEvent)
			if !ok {
				continue
			}
			var ev corev1.Event // not on the heap: there may be a hundred thousand
			cached.decode(&ev)
			involved := observe.InvolvedObject(&ev)
			if _, known := s.targets.Object(involved.UID); known || involved.UID == "" {
				continue
			}
			if kind := involved.GroupKind(); IsBaseKind(kind) || s.lookups.looksUp(kind) {
				out = append(out, types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name})
			}
		}
	}
	return out
}
