package target

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// node is a known [Object] in less than half of its size. There is one for each object of the watched kinds.
type node struct {
	CompactRef
	uid types.UID
	*relations
	deletedAt   instant // zero while the object exists
	lookedUp    instant
	dropsEvents bool
	current     bool // the object exists, and no other one was recorded under its name later
}

func (n *node) identity() Identity { return Identity{Ref: n.Ref(), UID: n.uid} }

func (n *node) object() Object {
	return Object{Identity: n.identity(), Owners: n.owners, Instances: n.instances, DropsEvents: n.dropsEvents, LookedUp: n.lookedUp.time()}
}

func (n *node) exists() bool { return n.deletedAt == 0 }

// isWatched reports whether the object exists and a watch covers it.
func (n *node) isWatched() bool { return n.exists() && n.lookedUp == 0 }

// hasRelationsOf reports whether the relations are those of an object.
func (n *node) hasRelationsOf(o Object) bool {
	return slices.Equal(n.owners, o.Owners) && slices.Equal(n.instances, o.Instances)
}

// relations are the fields of an [Object] that its siblings share, such as the Pods of a ReplicaSet.
type relations struct {
	owners    []Identity
	instances []Instance
}

var noRelations = &relations{}

// instant is a [time.Time] in 8 bytes: the nanoseconds since epoch, or 0 for the zero time. Like epoch it has a monotonic clock, so a step
// of the wall clock does not change ages.
type instant int64

var epoch = time.Now()

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(cmp.Or(t.Sub(epoch), 1))
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return epoch.Add(time.Duration(i))
}
