package reporter

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// Store keeps records across restarts of the process. *journal.Journal implements it; a nil one keeps nothing.
type Store interface {
	// Load returns the records of a table as the last process left them. A second call returns nothing.
	Load(table string) map[string][]byte
	Put(table, key string, value []byte)
	Delete(table, key string)
}

// The tables of a reporter. The database names predate the identifiers.
const (
	objectTable      = "objects" // by UID: attributed objects and their owners
	eventTable       = "events"  // by UID: NAMESPACE/NAME of offered Events
	terminationTable = "ends"    // by Event UID: NAMESPACE/NAME of terminated containers' pods
	transitionTable  = "changes" // by workload: Event UID of its last transition
)

// records is a Store that may be missing.
type records struct{ store Store }

func (r records) load(table string) map[string][]byte {
	if r.store == nil {
		return nil
	}
	return r.store.Load(table)
}

func (r records) put(table, key, value string) {
	if r.store != nil {
		r.store.Put(table, key, []byte(value))
	}
}

func (r records) delete(table, key string) {
	if r.store != nil {
		r.store.Delete(table, key)
	}
}

// reported records what was offered to the sink, so that it can be withdrawn, and is forgotten when its subject is gone.
type reported struct {
	objects      *attributedObjects
	operations   *offeredOperations
	events       *offeredEvents
	terminations *containerTerminations
	transitions  *transitions
}

func newReported(store Store) *reported {
	r := records{store}
	return &reported{
		objects: newAttributedObjects(r), operations: newOfferedOperations(), events: newOfferedEvents(r),
		terminations: newContainerTerminations(r), transitions: newTransitions(r),
	}
}

// sizes returns how much is recorded, for tests that look for leaks.
func (r *reported) sizes() map[string]int {
	out := r.events.sizes()
	maps.Copy(out, map[string]int{
		"attributed objects": r.objects.size(), "names with offered operations": r.operations.size(),
		"pods with terminated containers": r.terminations.size(), "transitions": r.transitions.size(),
	})
	return out
}

// pruneReported forgets the records of objects without a workload, of objects that the registry has forgotten, and of
// removed workloads. It does nothing while no workload is declared: after a start the declarations are still to come.
func (r *Reporter) pruneReported() {
	if r.targets.Empty() {
		return
	}
	keep := func(uid types.UID) bool {
		known, ok := r.targets.Lookup(uid)
		return ok && len(r.targets.Attributions(known)) > 0
	}
	r.reported.objects.prune(keep)
	r.objects.pruneTerminations(keep)
	r.statuses.pruneTransitions()
}
