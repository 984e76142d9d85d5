package reporter

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// filterTree returns a tree without the derived objects that the filters drop, and with the causes that they shorten. An object below a
// dropped one gets the next owner that is left.
func filterTree(tree observe.Tree, decide func(filter.Object) filter.Decision) observe.Tree {
	left := make([]observe.TreeObject, 0, len(tree.Objects))
	owners := map[types.UID]types.UID{} // of the dropped objects
	for _, o := range tree.Objects {
		if o.Listed {
			left = append(left, o)
			continue
		}
		id := o.Object
		decision := decide(filter.Object{
			Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Health: o.Health, Reason: o.Reason,
		})
		if decision.Action == filter.Drop {
			owners[id.UID] = o.Owner
			tree.Filtered++
			continue
		}
		if decision.Action == filter.Shorten {
			o = o.WithCauseOf(decision.Bytes)
		}
		left = append(left, o)
	}
	for i := range left {
		for owner, dropped := owners[left[i].Owner]; dropped; owner, dropped = owners[owner] {
			left[i].Owner = owner
		}
	}
	tree.Objects = left
	return tree
}
