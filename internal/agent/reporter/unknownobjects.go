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
}

func newUnknownObjectEvents() *unknownObjectEvents {
	return &unknownObjectEvents{names: map[target.Instance]map[types.UID]types.NamespacedName{}}
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
	var out []types.UID
	for _, names := range e.names {
		out = slices.AppendSeq(out, maps.Keys(names))
	}
	return out
}

// remove removes an Event that is deleted, or reported to no instance.
func (e *unknownObjectEvents) remove(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(uid)
}

func (e *unknownObjectEvents) removeLocked(uid types.UID) {
	for instance, names := range e.names {
		if delete(names, uid); len(names) == 0 {
			delete(e.names, instance)
		}
	}
}
