package target

import (
	"cmp"
	"slices"
)

// LabelUse describes where the label of a workload counts.
type LabelUse struct {
	// Everywhere is true if no namespace of the workload is known, so that its label counts in all namespaces.
	Everywhere bool
	// Ignored has objects whose label does not count, ordered by name.
	Ignored []Ref
	// More is true if there may be others, because more than maxIgnored objects have the label in other namespaces.
	More bool
}

// maxIgnored bounds the objects in other namespaces that [Registry.LabelUse] looks at. Anybody may create thousands of them, each with
// many owners.
const maxIgnored = 200

// LabelUse returns where the label of a workload counts, and the existing objects on which it does not.
func (r *Registry) LabelUse(workload string) LabelUse {
	r.mu.RLock()
	defer r.mu.RUnlock()
	w := r.workloads[workload]
	if w == nil {
		return LabelUse{}
	}
	use := LabelUse{Everywhere: w.labelCountsEverywhere()}
	var elsewhere []Identity
	for uid := range r.graph.labelled[w.Instance] {
		if n := r.graph.nodes[uid]; n.deletedAt.IsZero() && !w.labelCounts(n.Namespace) {
			elsewhere = append(elsewhere, n.Identity)
		}
	}
	slices.SortFunc(elsewhere, func(a, b Identity) int { return cmp.Compare(a.UID, b.UID) }) // the same ones each time
	use.More = len(elsewhere) > maxIgnored
	for _, id := range elsewhere[:min(len(elsewhere), maxIgnored)] {
		if !r.isAttributed(id, workload) {
			use.Ignored = append(use.Ignored, id.Ref)
		}
	}
	slices.SortFunc(use.Ignored, func(a, b Ref) int { return cmp.Compare(a.String(), b.String()) })
	return use
}

// isAttributed reports whether an object belongs to a workload; with mu held.
func (r *Registry) isAttributed(id Identity, workload string) bool {
	return slices.ContainsFunc(r.attributions(id), func(a Attribution) bool { return a.Workload == workload })
}

// labelCounts reports whether the label of the workload counts on an object of a namespace. A user who may create objects in
// one namespace must not add them to a workload of another one. Cluster-scoped objects count: creating them takes a
// permission for the whole cluster.
func (w *tracked) labelCounts(namespace string) bool {
	_, ok := w.namespaces[namespace]
	return ok || namespace == "" || w.labelCountsEverywhere()
}

// labelCountsEverywhere reports whether the label counts in all namespaces. Threeport installs a Helm release into a namespace
// that its ThreeportWorkload may not name, if the templates of the chart do not.
func (w *tracked) labelCountsEverywhere() bool {
	return w.Instance.Type == HelmWorkloadInstance && len(w.LabelNamespaces) == 0 &&
		!slices.ContainsFunc(w.Resources, func(res Resource) bool { return res.Namespace != "" })
}

// indexNamespaces sets the namespaces in which the label counts: the listed ones, as they are written and as they are resolved, and
// those of the annotation. Threeport lists also cluster-scoped resources of a Helm release with its namespace.
func (w *tracked) indexNamespaces() {
	w.namespaces = map[string]struct{}{}
	for i, res := range w.Resources {
		w.namespaces[res.Namespace] = struct{}{}
		w.namespaces[w.resolved[i].Namespace] = struct{}{}
	}
	for _, namespace := range w.LabelNamespaces {
		w.namespaces[namespace] = struct{}{}
	}
}
