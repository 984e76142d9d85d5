package assess

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// BuildTree returns all objects of an instance: those that its workloads list, in their order, and then the others that belong to it,
// sorted by kind, namespace and name.
func (a *Assessor) BuildTree(instance target.Instance) observe.Tree {
	b := treeBuilder{
		targets: a.targets, follows: a.cluster.Follows, instance: instance,
		index: map[types.UID]int{}, listed: map[target.Ref]bool{}, dependents: map[types.UID]*health.Dependents{},
	}
	assessed, pods := map[types.UID]health.Dependent{}, map[types.UID]*observe.PodFacts{}
	for _, part := range a.targets.WorkloadsOf(instance) {
		statuses, _ := a.ResourceStatuses(part.Name)
		b.addListed(statuses)
		maps.Copy(assessed, a.assessments.descendants(part.Name))
		maps.Copy(pods, a.assessments.podFacts(part.Name))
	}
	b.addDescendants()
	b.setOwners()
	b.setHealth(assessed)
	b.setPods(pods)
	objects := b.withoutUnused()
	return observe.Tree{Workload: instance, Revision: a.nextRevision(instance, len(objects)), Objects: objects}
}

// treeBuilder builds one tree. Its methods are called in the order of their declaration.
type treeBuilder struct {
	targets  *target.Registry
	follows  func(schema.GroupKind) bool
	instance target.Instance

	objects []observe.TreeObject
	index   map[types.UID]int // of an object among objects
	listed  map[target.Ref]bool
	// dependents are the assessed objects below an object that is not assessed itself.
	dependents map[types.UID]*health.Dependents
}

// addListed adds the resources that a workload lists.
func (b *treeBuilder) addListed(resources []target.ResourceStatus) {
	for _, s := range resources {
		if b.listed[s.Ref] {
			continue
		}
		b.listed[s.Ref] = true
		id := target.Identity{Ref: s.Ref}
		if current, ok := b.targets.ExistingObject(s.Ref); ok && s.State == target.Present {
			id = current
			b.index[id.UID] = len(b.objects)
		}
		b.objects = append(b.objects, observe.TreeObject{
			Object: id, Version: s.Version, Listed: true, ResourceID: s.ID, State: s.State,
			Health: s.Health, Reason: s.Reason, Cause: s.Cause, Since: s.Since,
		})
	}
}

// addDescendants adds the other existing objects that belong to the instance.
func (b *treeBuilder) addDescendants() {
	first := len(b.objects)
	existing := slices.DeleteFunc(b.targets.ObjectsOf(b.instance), func(id target.Identity) bool {
		current, ok := b.targets.ExistingObject(id.Ref)
		return id.UID == "" || !ok || current.UID != id.UID || b.listed[id.Ref]
	})
	b.objects = slices.Grow(b.objects, len(existing))
	belongs := func(c target.Attribution) bool { return c.Instance == b.instance }
	for _, id := range existing {
		if slices.ContainsFunc(b.targets.Attributions(id), belongs) {
			b.objects = append(b.objects, observe.TreeObject{Object: id, Health: string(health.Unknown), Reason: "NotJudged"})
		}
	}
	slices.SortFunc(b.objects[first:], func(a, b observe.TreeObject) int {
		x, y := a.Object, b.Object
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Group, y.Group))
	})
	for i := first; i < len(b.objects); i++ {
		b.index[b.objects[i].Object.UID] = i
	}
}

// setOwners puts each object below its first owner in the tree, its controller if there is one. It leaves out owners that
// would close a cycle, or have [target.MaxAncestors] others above them.
func (b *treeBuilder) setOwners() {
	for i := range b.objects {
		known, _ := b.targets.Object(b.objects[i].Object.UID)
		for _, owner := range known.Owners {
			if at, ok := b.index[owner.UID]; ok && !b.isBelow(at, i) {
				b.objects[i].Owner = owner.UID
				break
			}
		}
	}
}

// isBelow reports whether an object is another object, or below it by the owners set so far, or too far down to say.
func (b *treeBuilder) isBelow(at, other int) bool {
	for range target.MaxAncestors {
		if at == other {
			return true
		}
		owner, ok := b.index[b.objects[at].Owner]
		if !ok {
			return false
		}
		at = owner
	}
	return true
}

// setHealth sets the health of the descendants: their own assessment, or the combined health of the objects below them, as far as
// [target.MaxAncestors].
func (b *treeBuilder) setHealth(assessed map[types.UID]health.Dependent) {
	for i := range b.objects {
		o := &b.objects[i]
		d, ok := assessed[o.Object.UID]
		if !ok || o.Listed {
			continue
		}
		o.Health, o.Reason, o.Cause, o.Since = string(d.Status), d.Reason, d.Message, d.Since
		d.Via = health.OwnerPath{}
		at, ok := b.index[o.Owner]
		for above := 0; ok && above < target.MaxAncestors && !b.objects[at].Listed; at, ok = b.index[b.objects[at].Owner] {
			above++
			uid := b.objects[at].Object.UID
			if _, isAssessed := assessed[uid]; isAssessed {
				continue
			}
			if b.dependents[uid] == nil {
				b.dependents[uid] = &health.Dependents{}
			}
			b.dependents[uid].Set(d)
		}
	}
	for uid, dependents := range b.dependents {
		o := &b.objects[b.index[uid]]
		v := combined(o.Object, dependents)
		o.Health, o.Reason, o.Cause, o.Since = string(v.Status), v.Reason, v.Message, v.Since
	}
}

// setPods sets the facts of the Pods.
func (b *treeBuilder) setPods(pods map[types.UID]*observe.PodFacts) {
	for uid, facts := range pods {
		if at, ok := b.index[uid]; ok {
			b.objects[at].Pod = facts
		}
	}
}

// combined returns the health of an object that is not assessed itself: Healthy if all its dependents are.
func combined(id target.Identity, dependents *health.Dependents) health.Assessment {
	healthy := true
	dependents.Each(func(d health.Dependent) { healthy = healthy && d.Status == health.Healthy })
	if healthy {
		return health.Assessment{Verdict: health.Verdict{Status: health.Healthy}}
	}
	self := health.Assessment{Verdict: health.Verdict{Status: health.Unknown}, Subject: id.Kind + " " + id.Name}
	return dependents.Combine(id.GroupKind(), self).Assessment
}

// withoutUnused returns the tree without two sorts of derived objects that own nothing in it: ReplicaSets of earlier revisions, and
// objects of unwatched kinds. The agent does not notice when these are deleted.
func (b *treeBuilder) withoutUnused() []observe.TreeObject {
	owners := map[types.UID]bool{}
	for _, o := range b.objects {
		owners[o.Owner] = true
	}
	return slices.DeleteFunc(b.objects, func(o observe.TreeObject) bool {
		if o.Listed || owners[o.Object.UID] {
			return false
		}
		return o.Object.Group == "apps" && o.Object.Kind == "ReplicaSet" || !b.follows(o.Object.GroupKind())
	})
}
