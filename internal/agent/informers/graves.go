package informers

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// graves files objects in the registry and takes them out of it, and keeps each tombstone until it is
// reported. Informers of two versions of one kind tell of the same objects, each in its own time: an object is
// buried once, and one that was seen to be deleted does not rise again because the slower of them has still to
// tell of its last change.
type graves struct {
	targets *target.Registry

	mu      sync.Mutex
	pending map[target.Ref][]target.Identity // not reported yet, oldest first
	// dead holds the UIDs that were buried, for as long as the registry knows them. It is true for those that
	// the API server said were deleted, and false for those that are only not there, in a list that may be old.
	dead map[types.UID]bool
	// versions are the last that are known of those that were seen to be deleted.
	versions map[types.UID]string
}

func newGraves(targets *target.Registry) *graves {
	return &graves{
		targets: targets, pending: map[target.Ref][]target.Identity{}, dead: map[types.UID]bool{}, versions: map[types.UID]string{},
	}
}

// sawVersion tells the last version that is known of what is to be buried.
func (g *graves) sawVersion(uid types.UID, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, reported := g.dead[uid]; version != "" && !reported {
		g.versions[uid] = version
	}
}

// version returns the last version that is known of what was buried; empty if none is.
func (g *graves) version(uid types.UID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.versions[uid]
}

// file files an object that exists. Another under its name does not any more. It reports whether it did.
func (g *graves) file(o target.Object) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead[o.UID] {
		return false
	}
	delete(g.dead, o.UID)
	if before, ok := g.targets.Current(o.Ref); ok && before.UID != o.UID {
		g.buryLocked(before, false)
	}
	g.targets.Upsert(o)
	return true
}

// bury takes an object out of what exists, and keeps a tombstone. It reports whether that is news.
func (g *graves) bury(id target.Identity, certain bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buryLocked(id, certain)
}

func (g *graves) buryLocked(id target.Identity, certain bool) bool {
	known, buried := g.dead[id.UID]
	g.dead[id.UID] = known || certain
	if buried {
		return false
	}
	g.pending[id.Ref] = append(g.pending[id.Ref], id)
	g.targets.Delete(id.UID, time.Now())
	return true
}

// of returns the tombstones of a name that are not reported yet, oldest first.
func (g *graves) of(ref target.Ref) []target.Identity {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.pending[ref])
}

// reported drops the oldest tombstone of an incarnation.
func (g *graves) reported(id target.Identity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.versions, id.UID)
	left := g.pending[id.Ref]
	if i := slices.Index(left, id); i >= 0 {
		left = slices.Delete(slices.Clone(left), i, i+1)
	}
	if len(left) > 0 {
		g.pending[id.Ref] = left
	} else {
		delete(g.pending, id.Ref)
	}
}

// prune forgets the dead that the registry has forgotten.
func (g *graves) prune() {
	g.mu.Lock()
	defer g.mu.Unlock()
	gone := func(uid types.UID) bool {
		_, known := g.targets.Lookup(uid)
		return !known
	}
	maps.DeleteFunc(g.dead, func(uid types.UID, _ bool) bool { return gone(uid) })
	maps.DeleteFunc(g.versions, func(uid types.UID, _ string) bool { return gone(uid) })
	for ref, left := range g.pending {
		left = slices.DeleteFunc(left, func(id target.Identity) bool { return gone(id.UID) })
		if g.pending[ref] = left; len(left) == 0 {
			delete(g.pending, ref)
		}
	}
}
