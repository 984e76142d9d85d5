package reporter

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// unknownObjectEvents has the attributed Events about objects that the registry does not know, which no index finds.
type unknownObjectEvents struct {
	mu    sync.Mutex
	names map[target.Instance]map[types.UID]types.NamespacedName
	// instances are those that have an Event in names, so that a removal does not visit all of them.
	instances map[types.UID][]target.Instance
}

func newUnknownObjectEvents() *unknownObjectEvents {
	return &unknownObjectEvents{
		names: map[target.Instance]map[types.UID]types.NamespacedName{}, instances: map[types.UID][]target.Instance{},
	}
}

// set records to which instances an Event is reported.
func (e *unknownObjectEvents) set(uid types.UID, name types.NamespacedName, reports []observe.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(uid)
	for _, report := range reports {
		if e.names[report.Workload] == nil {
			e.names[report.Workload] = map[types.UID]types.NamespacedName{}
		}
		e.names[report.Workload][uid] = name
		e.instances[uid] = append(e.instances[uid], report.Workload)
	}
}

// of returns the names of an instance's Events.
func (e *unknownObjectEvents) of(instance target.Instance) []types.NamespacedName {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.names[instance]))
}

// uids returns the UIDs of all Events.
func (e *unknownObjectEvents) uids() []types.UID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.instances))
}

// remove removes an Event that is deleted, or whose object is known now.
func (e *unknownObjectEvents) remove(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(uid)
}

func (e *unknownObjectEvents) removeLocked(uid types.UID) {
	for _, instance := range e.instances[uid] {
		if names := e.names[instance]; len(names) > 1 {
			delete(names, uid)
		} else {
			delete(e.names, instance)
		}
	}
	delete(e.instances, uid)
}
