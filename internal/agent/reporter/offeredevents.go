package reporter

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// offeredEvents records the Events that this process, or an earlier one, offered, and that are not known to be deleted.
type offeredEvents struct {
	store records

	mu        sync.Mutex
	events    map[types.UID]offeredEvent
	instances map[target.Instance]map[types.UID]struct{} // the last instance to which this process offered each Event
	// preexisting holds the UIDs of Events that existed before this process watched them.
	preexisting map[types.UID]struct{}
}

type offeredEvent struct {
	name     types.NamespacedName
	instance target.Instance // zero if only an earlier process offered the Event
}

func newOfferedEvents(store records) *offeredEvents {
	o := &offeredEvents{
		store: store, events: map[types.UID]offeredEvent{},
		instances: map[target.Instance]map[types.UID]struct{}{}, preexisting: map[types.UID]struct{}{},
	}
	for uid, value := range store.load(eventTable) {
		namespace, name, _ := strings.Cut(string(value), "/")
		o.events[types.UID(uid)] = offeredEvent{name: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	return o
}

// add records that an Event is offered to an instance.
func (o *offeredEvents) add(uid types.UID, name types.NamespacedName, instance target.Instance) {
	if o.set(uid, name, instance) {
		o.store.put(eventTable, string(uid), name.String())
	}
}

// set reports whether the Event was not recorded before.
func (o *offeredEvents) set(uid types.UID, name types.NamespacedName, instance target.Instance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, known := o.events[uid]
	if known && old.instance == instance {
		return false
	}
	o.unlink(uid, old.instance)
	o.events[uid] = offeredEvent{name, instance}
	if o.instances[instance] == nil {
		o.instances[instance] = map[types.UID]struct{}{}
	}
	o.instances[instance][uid] = struct{}{}
	return !known
}

// remove removes an Event that is deleted.
func (o *offeredEvents) remove(uid types.UID) {
	o.mu.Lock()
	o.unlink(uid, o.events[uid].instance)
	delete(o.events, uid)
	delete(o.preexisting, uid)
	o.mu.Unlock()
	o.store.delete(eventTable, string(uid))
}

func (o *offeredEvents) unlink(uid types.UID, instance target.Instance) {
	delete(o.instances[instance], uid)
	if len(o.instances[instance]) == 0 {
		delete(o.instances, instance)
	}
}

// offeredTo returns the names of the Events whose last offer was to an instance.
func (o *offeredEvents) offeredTo(instance target.Instance) []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(o.instances[instance]))
	for uid := range o.instances[instance] {
		out = append(out, o.events[uid].name)
	}
	return out
}

// in returns the names of the Events in a namespace or ("") in the cluster, by UID.
func (o *offeredEvents) in(namespace string) map[types.UID]types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[types.UID]types.NamespacedName{}
	for uid, ev := range o.events {
		if namespace == "" || namespace == ev.name.Namespace {
			out[uid] = ev.name
		}
	}
	return out
}

func (o *offeredEvents) setPreexisting(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.preexisting[uid] = struct{}{}
}

func (o *offeredEvents) isPreexisting(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.preexisting[uid]
	return ok
}

func (o *offeredEvents) sizes() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return map[string]int{
		"offered Events": len(o.events), "instances with offered Events": len(o.instances), "preexisting Events": len(o.preexisting),
	}
}
