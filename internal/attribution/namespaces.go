package attribution

import (
	"cmp"
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// DefaultNamespace returns the namespace of namespaced resources that are listed without one, given the listed namespaces. If all
// other resources name the same namespace (as those of a Helm release do), it is that one, else "default".
func DefaultNamespace(listed iter.Seq[string]) string {
	namespace := ""
	for n := range listed {
		switch {
		case n == "" || n == namespace:
		case namespace == "":
			namespace = n
		default:
			return corev1.NamespaceDefault
		}
	}
	return cmp.Or(namespace, corev1.NamespaceDefault)
}

// LabelScope decides in which namespaces the label of a workload counts. A user who may create objects in one namespace must not add
// them to a workload of another one. Cluster-scoped objects count: creating them takes a permission for the whole cluster.
//
// The zero value has no namespaces.
type LabelScope struct {
	namespaces map[string]struct{}
	everywhere bool
}

// NewLabelScope returns the namespaces in the annotation of a workload, and those of its listed resources: as they are written, and as
// they are resolved. Threeport lists also cluster-scoped resources of a Helm release with its namespace.
//
// The label of a Helm workload without a written namespace counts everywhere. Threeport installs a Helm release into a namespace that
// its ThreeportWorkload may not name, if the templates of the chart do not.
func NewLabelScope(isHelm bool, annotated []string, written, resolved iter.Seq[string]) LabelScope {
	s := LabelScope{namespaces: map[string]struct{}{}, everywhere: isHelm && len(annotated) == 0}
	for _, n := range annotated {
		s.namespaces[n] = struct{}{}
	}
	for n := range written {
		s.namespaces[n] = struct{}{}
		s.everywhere = s.everywhere && n == ""
	}
	for n := range resolved {
		s.namespaces[n] = struct{}{}
	}
	return s
}

// Contains reports whether the label counts on the objects of a namespace; empty for cluster-scoped objects.
func (s LabelScope) Contains(namespace string) bool {
	_, ok := s.namespaces[namespace]
	return ok || namespace == "" || s.everywhere
}

// IsEverywhere reports whether the label counts in all namespaces.
func (s LabelScope) IsEverywhere() bool { return s.everywhere }
