package observe

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Tree tells of all objects of a workload's instance, listed and derived. It is made when it is sent: until then it takes
// no memory, and tells what is true then.
type Tree struct {
	Workload target.Instance
	// Edition differs whenever something in the tree has changed.
	Edition int64
	// Objects returns the objects as they are now, the listed ones first. It may be called at any time, from any goroutine.
	Objects func() []TreeObject
}

// TreeObject is an object in a [Tree].
type TreeObject struct {
	// Object has no UID if it does not exist.
	Object target.Identity
	// Version is that of its API; empty if that is not known.
	Version string
	// Owner is the object in the tree that it is below; empty at the top.
	Owner types.UID
	// Listed is true for the workload's own resources. They have a state, and the ID of their row if there is one.
	Listed     bool
	ResourceID int64
	State      target.State
	// Health is a word, Reason another, Cause a sentence.
	Health, Reason, Cause string
}

// Key returns the same for every tree of a workload.
func (t Tree) Key() Key { return Key("tree/" + instanceKey(t.Workload)) }

// OrderingKey returns the tree's own lane.
func (t Tree) OrderingKey() OrderingKey { return OrderingKey(t.Key()) }

// Version is the edition.
func (t Tree) Version() string { return strconv.FormatInt(t.Edition, 10) }

// Instance returns the workload.
func (t Tree) Instance() target.Instance { return t.Workload }

func (t Tree) String() string { return "tree of " + t.Workload.String() }
