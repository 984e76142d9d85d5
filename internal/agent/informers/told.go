package informers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// told are the Events that were offered, by this process or one before it, and are not known to be gone.
type told struct {
	mu     sync.Mutex
	events map[types.UID]toldEvent
	of     map[target.Instance]map[types.UID]struct{} // to whom this process offered them last
}

type toldEvent struct {
	name     types.NamespacedName
	instance target.Instance // zero if only a process before this one offered it
}

func newTold(events map[types.UID]types.NamespacedName) *told {
	t := &told{events: map[types.UID]toldEvent{}, of: map[target.Instance]map[types.UID]struct{}{}}
	for uid, name := range events {
		t.events[uid] = toldEvent{name: name}
	}
	return t
}

// add reports whether the Event was not offered to anybody before.
func (t *told) add(uid types.UID, name types.NamespacedName, instance target.Instance) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.events[uid]
	if known && old.instance == instance {
		return false
	}
	t.drop(uid, old.instance)
	t.events[uid] = toldEvent{name, instance}
	if t.of[instance] == nil {
		t.of[instance] = map[types.UID]struct{}{}
	}
	t.of[instance][uid] = struct{}{}
	return !known
}

func (t *told) remove(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(uid, t.events[uid].instance)
	delete(t.events, uid)
}

func (t *told) drop(uid types.UID, instance target.Instance) {
	delete(t.of[instance], uid)
	if len(t.of[instance]) == 0 {
		delete(t.of, instance)
	}
}

// to returns the names of the Events that were offered to an instance last.
func (t *told) to(instance target.Instance) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(t.of[instance]))
	for uid := range t.of[instance] {
		out = append(out, t.events[uid].name)
	}
	return out
}

// in returns the names of the Events in a namespace or ("") in all, by UID.
func (t *told) in(namespace string) map[types.UID]types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[types.UID]types.NamespacedName{}
	for uid, ev := range t.events {
		if namespace == "" || namespace == ev.name.Namespace {
			out[uid] = ev.name
		}
	}
	return out
}
