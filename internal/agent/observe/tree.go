package observe

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Tree has all objects of a workload's instance, listed and derived, with their health.
type Tree struct {
	Workload target.Instance
	// Revision differs whenever something in the tree has changed.
	Revision int64
	// Objects has the listed objects first. It must not be changed.
	Objects []TreeObject
	// Filtered counts the derived objects that the user's filters leave out.
	Filtered int
	// Trace is that of a sampled report; nil for others.
	Trace *Trace `json:"-"`
}

// TreeObject is an object in a [Tree].
type TreeObject struct {
	// Object has an empty UID if it does not exist.
	Object target.Identity
	// Version is that of the object's API; empty if it is not known.
	Version string
	// Owner is the UID of the object above it in the tree; empty at the top.
	Owner types.UID
	// Listed is true for the listed resources. They have a State, and the ResourceID of their row if there is one.
	Listed     bool
	ResourceID int64
	State      target.State
	// Health and Reason are words, Cause is a sentence.
	Health, Reason, Cause string
	// Since is when the health became what it is; zero for a derived object if the cluster does not record that.
	Since time.Time
	// Pod has the facts of a Pod; nil for other objects. It must not be changed.
	Pod *PodFacts
}

// WithCauseOf returns the object with at most so many bytes of its cause.
func (o TreeObject) WithCauseOf(bytes int) TreeObject {
	o.Cause = cut(o.Cause, bytes)
	return o
}

// Key returns the same for every tree of a workload.
func (t Tree) Key() Key { return Key("tree/" + instanceKey(t.Workload)) }

// OrderingKey is the key: trees of different workloads are independent.
func (t Tree) OrderingKey() OrderingKey { return OrderingKey(t.Key()) }

// Version is the revision.
func (t Tree) Version() string { return strconv.FormatInt(t.Revision, 10) }

// Instance returns the workload.
func (t Tree) Instance() target.Instance { return t.Workload }

func (t Tree) String() string { return "tree of " + t.Workload.String() }
