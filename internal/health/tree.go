package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Node is an object with the objects that descend from it.
type Node struct {
	Object *unstructured.Unstructured
	// Self is the assessment of the object alone.
	Self Assessment
	// Aggregate is the assessment of the object together with its descendants.
	Aggregate Aggregate
	Children  []*Node
}

// maxOwnerDepth bounds how many owners up a descendant counts. Real chains have five links or fewer. Without a limit,
// the time for an invented chain would grow with the square of its length.
const maxOwnerDepth = 16

// Forest assesses objects and arranges them by their owner references. An object is below its controller, or else below
// the first of its owners among the objects. Objects without such an owner are roots. Roots and children keep the given
// order. The function returns the context of each object.
func Forest(objects []*unstructured.Unstructured, contextOf func(*unstructured.Unstructured) Context) []*Node {
	nodes := make([]*Node, len(objects))
	known := map[types.UID]int{}
	for i, o := range objects {
		nodes[i] = &Node{Object: o, Self: Object(o.GroupVersionKind().GroupKind(), o, contextOf(o))}
		if uid := o.GetUID(); uid != "" {
			known[uid] = i
		}
	}
	owners := make([]int, len(nodes))
	for i, o := range objects {
		owners[i] = ownerOf(o, known)
	}
	breakCycles(owners)
	var roots []*Node
	for i, n := range nodes {
		if owner := owners[i]; owner >= 0 {
			nodes[owner].Children = append(nodes[owner].Children, n)
		} else {
			roots = append(roots, n)
		}
	}
	setExpected(roots, nodes)
	for _, n := range nodes {
		n.Aggregate = n.combined()
	}
	return roots
}

// setExpected sets the verdict on the empty EndpointSlices of Services that the workloads explain.
func setExpected(roots, nodes []*Node) {
	creators := podCreators(roots)
	for _, n := range nodes {
		if n.Object.GroupVersionKind().GroupKind() != serviceKind ||
			!slices.ContainsFunc(n.Children, func(slice *Node) bool { return slice.Self.Reason == noEndpoints }) {
			continue
		}
		expected := ExpectedVerdict(PodLabelsOf(serviceKind, n.Object), creators)
		for _, slice := range n.Children {
			slice.Self = slice.Self.orExpected(expected)
		}
	}
}

// podCreators returns the workloads in some trees, without what they create: a ReplicaSet of a Deployment that is scaled to 0 says
// nothing of its own.
func podCreators(trees []*Node) (out []PodCreator) {
	for _, n := range trees {
		if labels := PodLabelsOf(n.Object.GroupVersionKind().GroupKind(), n.Object); len(labels.template) > 0 {
			out = append(out, PodCreator{labels, n.combined().Verdict})
		} else {
			out = append(out, podCreators(n.Children)...)
		}
	}
	return out
}

// Labelled assesses the objects that belong to a workload by their label only, given the roots of their trees. Only Pods and
// EndpointSlices count; it returns false if there are none.
func Labelled(roots []*Node) (Verdict, bool) {
	var dependents Dependents
	for _, n := range roots {
		n.addTo(&dependents, OwnerPath{}, maxOwnerDepth)
	}
	healthy := Assessment{Verdict: Verdict{Status: Healthy}}
	return dependents.Combine(schema.GroupKind{}, healthy).Verdict, dependents.Len() > 0
}

// ownerOf returns the index of an object's owner; -1 if it has none among the objects.
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

// breakCycles removes the owners of objects that own each other. No API server allows such objects.
func breakCycles(owners []int) {
	walk := make([]int, len(owners)) // number of the first walk up that reached an object, from 1
	for start := range owners {
		at := start
		for at >= 0 && walk[at] == 0 {
			walk[at] = start + 1
			at = owners[at]
		}
		for at >= 0 && walk[at] == start+1 && owners[at] >= 0 { // a cycle
			at, owners[at] = owners[at], -1
		}
	}
}

// combined assesses a node together with its descendants.
func (n *Node) combined() Aggregate {
	var dependents Dependents
	for _, child := range n.Children {
		child.addTo(&dependents, OwnerPath{}, maxOwnerDepth)
	}
	return dependents.Combine(n.Object.GroupVersionKind().GroupKind(), n.Self)
}

// addTo adds a node and its descendants to the dependents of an object above it.
func (n *Node) addTo(dependents *Dependents, via OwnerPath, depth int) {
	if depth == 0 {
		return
	}
	gk := n.Object.GroupVersionKind().GroupKind()
	if CountsAsDependent(gk) {
		uid := n.Object.GetUID()
		if uid == "" { // the object does not come from an API server
			uid = types.UID(n.Object.GetNamespace() + "/" + n.Object.GetName())
		}
		dependents.Set(Dependent{UID: uid, Kind: gk.Kind, Name: n.Object.GetName(), Via: via, Assessment: n.Self})
	}
	if len(n.Children) == 0 {
		return
	}
	below := via.Append(ObjectRef{Kind: gk.Kind, Name: n.Object.GetName()})
	for _, child := range n.Children {
		child.addTo(dependents, below, depth-1)
	}
}
