package target

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// node is a known [Object] in the form of the graph. There is one for each object of the watched kinds.
type node struct {
	compactRef
	uid         types.UID
	owners      []Identity
	instances   []Instance
	deletedAt   time.Time // zero while the object exists
	lookedUp    time.Time
	dropsEvents bool
	current     bool // the object exists, and no other one was recorded under its name later
}

func (n *node) identity() Identity { return Identity{Ref: n.ref(), UID: n.uid} }

func (n *node) object() Object {
	return Object{Identity: n.identity(), Owners: n.owners, Instances: n.instances, DropsEvents: n.dropsEvents, LookedUp: n.lookedUp}
}

func (n *node) exists() bool { return n.deletedAt.IsZero() }

// hasRelationsOf reports whether the relations are those of an object.
func (n *node) hasRelationsOf(o Object) bool {
	return slices.Equal(n.owners, o.Owners) && slices.Equal(n.instances, o.Instances)
}
