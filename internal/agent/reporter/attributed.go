package reporter

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// objectRecord is the record of an object in the registry.
type objectRecord struct {
	target.Object
	DeletedAt time.Time `json:",omitzero"`
}

// attributedObjects records which objects belonged to workloads. After a restart the agent notices their deletion, and
// attributes Events about deleted objects.
//
// It calls the store, and the registry in prune, with its mutex held, so that the set and the records agree. Both are
// leaves of the lock order.
type attributedObjects struct {
	store records

	mu   sync.Mutex
	uids map[types.UID]struct{}
}

func newAttributedObjects(store records) *attributedObjects {
	return &attributedObjects{store: store, uids: map[types.UID]struct{}{}}
}

// add records an attributed object, or an owner of one.
func (a *attributedObjects) add(o target.Object) { a.put(objectRecord{Object: o}) }

// markDeleted records the deletion of a recorded object.
func (a *attributedObjects) markDeleted(o target.Object, at time.Time) {
	if a.has(o.UID) {
		a.put(objectRecord{o, at})
	}
}

func (a *attributedObjects) put(r objectRecord) {
	if a.store.store == nil {
		return
	}
	r.LookedUp = time.Time{}
	value, err := json.Marshal(r)
	if err != nil { // the record has only types that encode
		panic(fmt.Sprintf("encode record of %s: %v", r.Ref, err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.uids[r.UID] = struct{}{}
	a.store.put(objectTable, string(r.UID), string(value))
}

// has reports whether an object is recorded: by this process or an earlier one.
func (a *attributedObjects) has(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.uids[uid]
	return ok
}

// prune removes the records of objects that are not to be kept.
func (a *attributedObjects) prune(keep func(types.UID) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid := range a.uids {
		if !keep(uid) {
			delete(a.uids, uid)
			a.store.delete(objectTable, string(uid))
		}
	}
}

// restore adds the recorded objects to the registry, as objects that no informer has seen yet. Deleted objects come
// first, because a name belongs to the object that was added last. Unreadable records are removed.
func (a *attributedObjects) restore(targets *target.Registry, now time.Time) {
	var existing []target.Object
	for uid, value := range a.store.load(objectTable) {
		var r objectRecord
		if err := json.Unmarshal(value, &r); err != nil || string(r.UID) != uid {
			a.store.delete(objectTable, uid)
			continue
		}
		a.mu.Lock()
		a.uids[r.UID] = struct{}{}
		a.mu.Unlock()
		r.LookedUp = now
		if r.DeletedAt.IsZero() {
			existing = append(existing, r.Object)
			continue
		}
		targets.Upsert(r.Object)
		targets.Delete(r.UID, r.DeletedAt)
	}
	for _, o := range existing {
		targets.Upsert(o)
	}
}

func (a *attributedObjects) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.uids)
}
