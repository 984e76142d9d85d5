package oracle

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// attribution is the workload of an object.
type attribution struct {
	workload *Expected
	// resourceID is the row of the listed resource that the object is or descends from; 0 if there is none.
	resourceID int64
	// itself is true if the object is the listed resource.
	itself bool
}

// compareAttributions orders the attributions of an object. The first one gets the rows.
func compareAttributions(a, b attribution) int {
	return cmp.Or(cmp.Compare(a.workload.InstanceID, b.workload.InstanceID), cmp.Compare(a.workload.Name, b.workload.Name))
}

// attributions are the attributions of all objects.
type attributions struct {
	objects  map[types.UID]object
	listed   map[types.UID]attribution // by the UID of each incarnation of a listed name
	labelled map[string]*Expected
}

func (o *Oracle) attributions(workloads []Expected) attributions {
	c := attributions{o.objects, map[types.UID]attribution{}, map[string]*Expected{}}
	for i := range workloads {
		w := &workloads[i]
		label := v1alpha1.LabelWorkloadInstance
		if w.helm() {
			label = v1alpha1.LabelHelmWorkloadInstance
		}
		c.labelled[label+"="+strconv.FormatInt(w.InstanceID, 10)] = w
		for _, res := range w.Resources {
			mine := attribution{workload: w, resourceID: res.ThreeportID}
			for _, uid := range o.incarnations(w, res) {
				if other, ok := c.listed[uid]; !ok || compareAttributions(mine, other) < 0 {
					c.listed[uid] = mine
				}
			}
		}
	}
	return c
}

// of returns the attribution of an object: the nearest listed owner decides, or else the nearest label.
func (c attributions) of(uid types.UID) (attribution, bool) {
	var byLabel *Expected
	visited := map[types.UID]bool{uid: true}
	for level := []types.UID{uid}; len(level) > 0; {
		var found []attribution
		var owners []types.UID
		for _, at := range level {
			if listed, ok := c.listed[at]; ok {
				listed.itself = at == uid
				found = append(found, listed)
			}
			byLabel = cmp.Or(byLabel, c.labelOf(at))
			for _, owner := range c.objects[at].owners {
				if !visited[owner] {
					visited[owner] = true
					owners = append(owners, owner)
				}
			}
		}
		if len(found) > 0 {
			return slices.MinFunc(found, compareAttributions), true
		}
		level = owners
	}
	if byLabel == nil || !byLabel.labelCounts(c.objects[uid].namespace) {
		return attribution{}, false
	}
	return attribution{workload: byLabel}, true
}

func (c attributions) labelOf(uid types.UID) *Expected {
	labels := c.objects[uid].labels
	for _, label := range []string{v1alpha1.LabelWorkloadInstance, v1alpha1.LabelHelmWorkloadInstance} {
		if w := c.labelled[label+"="+labels[label]]; w != nil {
			return w
		}
	}
	return nil
}

// incarnations returns all objects with the name of a listed resource, the latest last. The namespace of the list may be
// missing or, for a cluster-scoped kind, superfluous, so both forms of the name count. A kind has objects of only one form.
func (o *Oracle) incarnations(w *Expected, res v1alpha1.WorkloadResourceInstance) []types.UID {
	name := fullName{schema.GroupKind{Group: res.Group, Kind: res.Kind}, cmp.Or(res.Namespace, w.defaultNamespace()), res.Name}
	namespaced := o.incarnationsByName[name]
	name.namespace = ""
	return slices.Concat(namespaced, o.incarnationsByName[name])
}

// labelCounts reports whether the label of the workload counts in a namespace. The workloads of the tests have no annotation.
func (w *Expected) labelCounts(namespace string) bool {
	return namespace == "" || slices.ContainsFunc(w.Resources, func(res v1alpha1.WorkloadResourceInstance) bool {
		return cmp.Or(res.Namespace, w.defaultNamespace()) == namespace
	})
}

// defaultNamespace returns the namespace of resources that are listed without one. The description of the field in the CRD
// defines it.
func (w *Expected) defaultNamespace() string {
	named := map[string]bool{}
	var last string
	for _, res := range w.Resources {
		if res.Namespace != "" {
			last, named[res.Namespace] = res.Namespace, true
		}
	}
	if len(named) != 1 {
		return "default"
	}
	return last
}
