package informers

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Tombstone is a deleted object whose deletion is not reported yet.
type Tombstone struct {
	target.Identity
	// ResourceVersion is the last known version; empty if none is known.
	ResourceVersion string
}

// tombstones records which objects exist in the registry, and keeps a tombstone of each deleted object until its deletion
// is reported.
//
// Informers of two versions of one kind deliver the same objects, each at its own pace. An object gets one tombstone, and
// a slower informer's older update does not revive an object that another informer saw deleted.
type tombstones struct {
	targets *target.Registry

	mu      sync.Mutex
	pending map[target.Ref][]target.Identity // oldest first
	// deleted holds the UIDs of deleted objects for as long as the registry knows them. The value is true if the API server
	// reported the deletion, and false if the object is only missing from a list, which may be stale.
	deleted map[types.UID]bool
	// versions are the last known versions of objects whose deletion an informer delivered.
	versions map[types.UID]string
}

func newTombstones(targets *target.Registry) *tombstones {
	return &tombstones{
		targets: targets, pending: map[target.Ref][]target.Identity{},
		deleted: map[types.UID]bool{}, versions: map[types.UID]string{},
	}
}

// upsert records an object that exists, and deletes another object of the same name. It reports false for an object that
// was already deleted.
func (t *tombstones) upsert(o target.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted[o.UID] {
		return false
	}
	delete(t.deleted, o.UID)
	if before, ok := t.targets.ExistingObject(o.Ref); ok && before.UID != o.UID {
		t.addLocked(before, false)
	}
	t.targets.Upsert(o)
	return true
}

// add records that an object is deleted, in the given version if that is not empty. certain is false if the object is
// only missing from a list. It reports whether it added a tombstone.
func (t *tombstones) add(id target.Identity, version string, certain bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.deleted[id.UID]; version != "" && !known {
		t.versions[id.UID] = version
	}
	return t.addLocked(id, certain)
}

func (t *tombstones) addLocked(id target.Identity, certain bool) bool {
	wasCertain, known := t.deleted[id.UID]
	t.deleted[id.UID] = wasCertain || certain
	if known {
		return false
	}
	t.pending[id.Ref] = append(t.pending[id.Ref], id)
	t.targets.Delete(id.UID, time.Now())
	return true
}

// incarnations returns the tombstones of a name, oldest first, and the existing object, as of one moment.
func (t *tombstones) incarnations(ref target.Ref) (deleted []Tombstone, current target.Identity, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range t.pending[ref] {
		deleted = append(deleted, Tombstone{id, t.versions[id.UID]})
	}
	current, exists = t.targets.ExistingObject(ref)
	return deleted, current, exists
}

// remove removes the oldest tombstone of an object, whose deletion is reported.
func (t *tombstones) remove(id target.Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.versions, id.UID)
	left := t.pending[id.Ref]
	if i := slices.Index(left, id); i >= 0 {
		left = slices.Delete(slices.Clone(left), i, i+1)
	}
	if len(left) > 0 {
		t.pending[id.Ref] = left
	} else {
		delete(t.pending, id.Ref)
	}
}

// prune removes the objects that the registry no longer knows.
func (t *tombstones) prune() {
	t.mu.Lock()
	defer t.mu.Unlock()
	unknown := func(uid types.UID) bool {
		_, known := t.targets.Object(uid)
		return !known
	}
	maps.DeleteFunc(t.deleted, func(uid types.UID, _ bool) bool { return unknown(uid) })
	maps.DeleteFunc(t.versions, func(uid types.UID, _ string) bool { return unknown(uid) })
	for ref, left := range t.pending {
		left = slices.DeleteFunc(left, func(id target.Identity) bool { return unknown(id.UID) })
		if t.pending[ref] = left; len(left) == 0 {
			delete(t.pending, ref)
		}
	}
}

// sizes returns how much is held, for tests.
func (t *tombstones) sizes() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return map[string]int{"tombstones": len(t.pending), "deleted objects": len(t.deleted), "last versions": len(t.versions)}
}
