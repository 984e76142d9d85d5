package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Node is an object with what descends from it.
type Node struct {
	Object *unstructured.Unstructured
	// Self is the verdict on the object by itself, Joint that with what descends from it.
	Self, Aggregate Assessment
	Children        []*Node
}

// deepest is how many owners up what descends from an object counts for. Real chains have five links or fewer; without
// a limit, a chain that somebody made up would take time by the square of its length.
const deepest = 16

// Forest judges objects, and arranges them by their owner references: an object is below its controller, or else
// below its first owner that is among them; the roots are those without one. Both keep the order in which they are
// given. The scene is that of each object.
func Forest(objects []*unstructured.Unstructured, scene func(*unstructured.Unstructured) Context) []*Node {
	nodes := make([]*Node, len(objects))
	known := map[types.UID]int{}
	for i, o := range objects {
		nodes[i] = &Node{Object: o, Self: Object(o.GroupVersionKind().GroupKind(), o, scene(o))}
		if uid := o.GetUID(); uid != "" {
			known[uid] = i
		}
	}
	owners := make([]int, len(nodes))
	for i, o := range objects {
		owners[i] = ownerOf(o, known)
	}
	breakCircles(owners)
	var roots []*Node
	for i, n := range nodes {
		if owner := owners[i]; owner >= 0 {
			nodes[owner].Children = append(nodes[owner].Children, n)
		} else {
			roots = append(roots, n)
		}
	}
	for _, n := range nodes {
		n.combine()
	}
	return roots
}

// ownerOf returns the place of an object's owner; -1 if it is not known.
func ownerOf(o *unstructured.Unstructured, known map[types.UID]int) int {
	owner := -1
	for _, ref := range o.GetOwnerReferences() {
		at, ok := known[ref.UID]
		switch {
		case !ok:
		case ref.Controller != nil && *ref.Controller:
			return at
		case owner < 0:
			owner = at
		}
	}
	return owner
}

// breakCircles makes objects that own each other, which no API server allows, belong to nobody.
func breakCircles(owners []int) {
	walk := make([]int, len(owners)) // by which walk up an object was come to first, from 1
	for start := range owners {
		at := start
		for at >= 0 && walk[at] == 0 {
			walk[at] = start + 1
			at = owners[at]
		}
		for at >= 0 && walk[at] == start+1 && owners[at] >= 0 { // a circle
			at, owners[at] = owners[at], -1
		}
	}
}

// combine judges a node with what descends from it.
func (n *Node) combine() {
	var family Dependents
	for _, child := range n.Children {
		child.join(&family, "", deepest)
	}
	n.Aggregate = family.Combine(n.Object.GroupVersionKind().GroupKind(), n.Self)
}

// join puts what is judged, and not only a link in the chain, into a family.
func (n *Node) join(family *Dependents, via string, depth int) {
	if depth == 0 {
		return
	}
	gk := n.Object.GroupVersionKind().GroupKind()
	if CountsAsDependent(gk) {
		uid := n.Object.GetUID()
		if uid == "" { // it is not from an API server
			uid = types.UID(n.Object.GetNamespace() + "/" + n.Object.GetName())
		}
		family.Set(Dependent{UID: uid, Kind: gk.Kind, Name: n.Object.GetName(), Via: via, Assessment: n.Self})
	}
	below := gk.Kind + " " + n.Object.GetName()
	if via != "" {
		below = via + " ← " + below
	}
	for _, child := range n.Children {
		child.join(family, below, depth-1)
	}
}
