package oracle

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// claim is where an object belongs.
type claim struct {
	workload *Expected
	// resourceID is that of the listed resource that the object is or descends from; 0 if it has no row.
	resourceID int64
	// itself is true if the object is the listed resource.
	itself bool
}

// first tells which of two workloads that claim an object gets the rows.
func first(a, b claim) int {
	return cmp.Or(cmp.Compare(a.workload.InstanceID, b.workload.InstanceID), cmp.Compare(a.workload.Name, b.workload.Name))
}

// claims is what belongs to whom.
type claims struct {
	objects  map[types.UID]object
	listed   map[types.UID]claim // every incarnation of a listed name
	labelled map[string]*Expected
}

func (o *Oracle) claims(workloads []Expected) claims {
	c := claims{o.objects, map[types.UID]claim{}, map[string]*Expected{}}
	for i := range workloads {
		w := &workloads[i]
		label := v1alpha1.LabelWorkloadInstance
		if w.helm() {
			label = v1alpha1.LabelHelmWorkloadInstance
		}
		c.labelled[label+"="+strconv.FormatInt(w.InstanceID, 10)] = w
		for _, res := range w.Resources {
			mine := claim{workload: w, resourceID: res.ThreeportID}
			for _, uid := range o.incarnations(w, res) {
				if other, ok := c.listed[uid]; !ok || first(mine, other) < 0 {
					c.listed[uid] = mine
				}
			}
		}
	}
	return c
}

// of walks up the owners of an object to one that is listed. Where there is none, the nearest label tells.
func (c claims) of(uid types.UID) (claim, bool) {
	var byLabel *Expected
	visited := map[types.UID]bool{uid: true}
	for level := []types.UID{uid}; len(level) > 0; {
		var found []claim
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
			return slices.MinFunc(found, first), true
		}
		level = owners
	}
	return claim{workload: byLabel}, byLabel != nil
}

func (c claims) labelOf(uid types.UID) *Expected {
	labels := c.objects[uid].labels
	for _, label := range []string{v1alpha1.LabelWorkloadInstance, v1alpha1.LabelHelmWorkloadInstance} {
		if w := c.labelled[label+"="+labels[label]]; w != nil {
			return w
		}
	}
	return nil
}

// incarnations returns all that bore the name of a listed resource, the latest last. The list need not know
// whether a kind is namespaced: the namespace is left out then, or does not apply. No object has a name both
// ways.
func (o *Oracle) incarnations(w *Expected, res v1alpha1.WorkloadResourceInstance) []types.UID {
	bears := fullName{schema.GroupKind{Group: res.Group, Kind: res.Kind}, cmp.Or(res.Namespace, w.defaultNamespace()), res.Name}
	namespaced := o.bearers[bears]
	bears.namespace = ""
	return slices.Concat(namespaced, o.bearers[bears])
}

// defaultNamespace is the only one that the workload's resources name, else "default": the ThreeportWorkload's
// definition says so.
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
