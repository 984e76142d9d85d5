package assess

import (
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// lastTree is the last tree of an instance that was due.
type lastTree struct {
	changed  bool // since then
	revision int64
	at       time.Time
	objects  int
}

// objectsPerTree is the size up to which a tree is reported as often as a status. The interval grows in proportion to the
// size of a larger tree.
const objectsPerTree = 500

// TreeChanged marks the tree of an instance as changed. It reports whether the tree was unchanged before.
func (a *Assessor) TreeChanged(instance target.Instance) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.trees[instance]
	if t == nil || t.changed { // AdmitTree considers an unknown tree changed
		return false
	}
	t.changed = true
	return true
}

// AllTreesChanged marks all trees as changed.
func (a *Assessor) AllTreesChanged() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.trees {
		t.changed = true
	}
}

// AdmitTree reports whether the tree of an instance has changed and may be reported now. If it may only be reported later,
// wait is when to ask again. A due tree counts as unchanged from now on, so that a change while it is built marks it again.
func (a *Assessor) AdmitTree(instance target.Instance) (due bool, wait time.Duration) {
	now := a.config.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.trees[instance]
	if t == nil {
		t = &lastTree{changed: true}
		a.trees[instance] = t
	}
	if !t.changed {
		return false, 0
	}
	pause := a.config.StatusInterval * time.Duration(max(t.objects, objectsPerTree)) / objectsPerTree
	if wait := t.at.Add(pause).Sub(now); !t.at.IsZero() && wait > 0 {
		return false, wait
	}
	t.changed, t.at = false, now
	return true, 0
}

// nextRevision records the size of a tree, and returns its revision.
func (a *Assessor) nextRevision(instance target.Instance, objects int) int64 {
	now := a.config.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.trees[instance]
	if t == nil {
		t = &lastTree{}
		a.trees[instance] = t
	}
	t.objects, t.revision = objects, max(now.UnixMicro(), t.revision+1)
	return t.revision
}
