package reporter

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// eventNotes records which Events preexisted, and which attributed Events are about unknown objects.
type eventNotes struct {
	mu sync.Mutex
	// preexisting holds the Events that existed before this process watched them.
	preexisting map[types.UID]struct{}
	// unknownObjects holds the attributed Events about objects that the registry does not know, which no index finds.
	unknownObjects map[target.Instance]map[types.UID]types.NamespacedName
}

func newEventNotes() *eventNotes {
	return &eventNotes{
		preexisting: map[types.UID]struct{}{}, unknownObjects: map[target.Instance]map[types.UID]types.NamespacedName{},
	}
}

func (n *eventNotes) setPreexisting(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.preexisting[uid] = struct{}{}
}

func (n *eventNotes) preexistingEvents() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.preexisting))
}

func (n *eventNotes) isPreexisting(uid types.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.preexisting[uid]
	return ok
}

// setAboutUnknownObject records to which instances an Event about an object that the registry does not know is reported.
func (n *eventNotes) setAboutUnknownObject(uid types.UID, name types.NamespacedName, reports []observe.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clearAboutUnknownObject(uid)
	for _, report := range reports {
		if n.unknownObjects[report.Workload] == nil {
			n.unknownObjects[report.Workload] = map[types.UID]types.NamespacedName{}
		}
		n.unknownObjects[report.Workload][uid] = name
	}
}

// aboutUnknownObjects returns the names of an instance's Events about objects that the registry does not know.
func (n *eventNotes) aboutUnknownObjects(instance target.Instance) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.unknownObjects[instance]))
}

// remove removes an Event that is deleted.
func (n *eventNotes) remove(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.preexisting, uid)
	n.clearAboutUnknownObject(uid)
}

func (n *eventNotes) clearAboutUnknownObject(uid types.UID) {
	for instance, names := range n.unknownObjects {
		if delete(names, uid); len(names) == 0 {
			delete(n.unknownObjects, instance)
		}
	}
}
