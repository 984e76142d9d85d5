package target

import (
	"cmp"
	"slices"

	"github.com/threeport/threeport-agent/internal/attribution"
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
	use := LabelUse{Everywhere: w.labels.IsEverywhere()}
	var elsewhere []Identity
	for n := range r.graph.labelled[w.Instance] {
		if id := n.identity(); n.exists() && !w.labels.Contains(id.Namespace) {
			elsewhere = append(elsewhere, id)
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

// labelScope returns where the label of the workload counts.
func (w *tracked) labelScope() attribution.LabelScope {
	resolved := func(yield func(string) bool) {
		for i := range w.resolved {
			if !yield(w.resolved[i].Namespace) {
				return
			}
		}
	}
	return attribution.NewLabelScope(w.Instance.Type == HelmWorkloadInstance, w.LabelNamespaces, w.writtenNamespaces(), resolved)
}
