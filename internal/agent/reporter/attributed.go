package reporter

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Store keeps records across restarts of the process. *journal.Journal implements it; a nil one keeps nothing.
type Store interface {
	// Load returns the records of a table as the last process left them. A second call returns nothing.
	Load(table string) map[string][]byte
	Put(table, key string, value []byte)
	Delete(table, key string)
}

// objectTable has an [objectRecord] for each attributed object, by its UID.
const objectTable = "objects"

// objectRecord is the record of an object in the registry.
type objectRecord struct {
	target.Object
	DeletedAt time.Time `json:",omitzero"`
}

// attributedObject is an object that this process has reported to a workload.
type attributedObject struct {
	target.Attribution
	target.Identity
}

// sameResource reports whether two objects count for the health of the same resource.
func (o attributedObject) sameResource(other attributedObject) bool {
	return o.Workload == other.Workload && o.Resource.Ref == other.Resource.Ref
}

// operation returns the report of the object without a version, for its keys.
func (o attributedObject) operation() observe.Operation {
	return observe.Operation{Attribution: o.Attribution, Object: o.Identity}
}

// attributedObjects records which objects belong to workloads: by name those that this process has reported, and in the
// store, with their owners, those of an earlier process too. After a restart the agent notices their deletion, and
// attributes Events about deleted objects.
//
// It calls the store, and the registry in prune, with its mutex held, so that the set and the records agree. Both are
// leaves of the lock order.
type attributedObjects struct {
	store Store

	mu       sync.Mutex
	byName   map[target.CompactRef][]attributedUID
	recorded map[types.UID]recordHash
	buffer   bytes.Buffer // of put
}

// recordHash is the hash of an [objectRecord] that was put into the store, so that an owner of many Pods is put once. A state file that is
// damaged while the agent runs loses these records until they change.
type recordHash uint64

var recordSeed = maphash.MakeSeed()

func hashRecord(value []byte) recordHash { return recordHash(maphash.Bytes(recordSeed, value)) }

// attributedUID is the UID of an attributedObject. The Pods of a resource share their attribution.
type attributedUID struct {
	attribution unique.Handle[target.Attribution]
	uid         types.UID
}

func newAttributedObjects(store Store) *attributedObjects {
	return &attributedObjects{store: store, byName: map[target.CompactRef][]attributedUID{}, recorded: map[types.UID]recordHash{}}
}

// add adds an object, and reports whether it was not there before.
func (a *attributedObjects) add(o attributedObject) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	added := attributedUID{unique.Make(o.Attribution), o.UID}
	name := target.Compact(o.Ref)
	if slices.Contains(a.byName[name], added) {
		return false
	}
	a.byName[name] = append(a.byName[name], added)
	return true
}

// names returns the names of all objects.
func (a *attributedObjects) names() []target.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]target.Ref, 0, len(a.byName))
	for name := range a.byName {
		out = append(out, name.Ref())
	}
	return out
}

// removeExcept removes the objects of a name, except those to keep, and returns both.
func (a *attributedObjects) removeExcept(ref target.Ref, keep func(attributedObject) bool) (kept, removed []attributedObject) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var stay []attributedUID
	name := target.Compact(ref)
	for _, named := range a.byName[name] {
		o := attributedObject{named.attribution.Value(), target.Identity{Ref: ref, UID: named.uid}}
		if keep(o) {
			kept, stay = append(kept, o), append(stay, named)
		} else {
			removed = append(removed, o)
		}
	}
	if len(stay) == 0 {
		delete(a.byName, name)
	} else {
		a.byName[name] = stay
	}
	return kept, removed
}

// record stores an attributed object, or an owner of one.
func (a *attributedObjects) record(o target.Object) { a.put(objectRecord{Object: o}) }

// recordDeletion stores when a recorded object was deleted.
func (a *attributedObjects) recordDeletion(o target.Object, at time.Time) {
	if a.isRecorded(o.UID) {
		a.put(objectRecord{o, at})
	}
}

func (a *attributedObjects) put(r objectRecord) {
	if a.store == nil {
		return
	}
	r.LookedUp = time.Time{}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buffer.Reset()
	if err := json.NewEncoder(&a.buffer).Encode(r); err != nil {
		return // the API server sets the times of an object's metadata, so this does not happen
	}
	value := bytes.TrimSpace(a.buffer.Bytes())
	hash := hashRecord(value)
	if before, ok := a.recorded[r.UID]; !ok || before != hash {
		a.recorded[r.UID] = hash
		a.store.Put(objectTable, string(r.UID), bytes.Clone(value))
	}
}

// isRecorded reports whether an object is recorded: by this process or an earlier one.
func (a *attributedObjects) isRecorded(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.recorded[uid]
	return ok
}

// prune removes the records of objects without a workload, and of objects that the registry has forgotten, and returns their
// UIDs. It does nothing while no workload is declared: after a start the declarations are still to come.
func (a *attributedObjects) prune(targets *target.Registry) (removed []types.UID) {
	if targets.Empty() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid := range a.recorded {
		if known, ok := targets.Object(uid); !ok || len(targets.Attributions(known.Identity)) == 0 {
			delete(a.recorded, uid)
			a.store.Delete(objectTable, string(uid))
			removed = append(removed, uid)
		}
	}
	return removed
}

// restore adds the recorded objects to the registry, as objects that no informer has seen yet. Unreadable records are removed.
func (a *attributedObjects) restore(targets *target.Registry, now time.Time) {
	if a.store == nil {
		return
	}
	for uid, value := range a.store.Load(objectTable) {
		var r objectRecord
		if err := json.Unmarshal(value, &r); err != nil || string(r.UID) != uid {
			a.store.Delete(objectTable, uid)
			continue
		}
		a.mu.Lock()
		a.recorded[r.UID] = hashRecord(value)
		a.mu.Unlock()
		r.LookedUp = now
		if r.DeletedAt.IsZero() {
			targets.Upsert(r.Object)
		} else {
			targets.UpsertDeleted(r.Object, r.DeletedAt)
		}
	}
}
