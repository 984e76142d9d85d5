package informers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// treePost is what was offered last of an instance's tree, and when.
type treePost struct {
	changed bool // since then
	edition int64
	at      time.Time
	objects int // in the last one that was made
}

// objectsPerTree is how many objects a tree may have that is told as often as a status: a larger one is told as much more
// seldom as it is larger.
const objectsPerTree = 500

// treeOfInstance returns what was offered of a tree, with w.mu held.
func (w *Watcher) treeOfInstance(instance target.Instance) *treePost {
	t := w.trees[instance]
	if t == nil {
		t = &treePost{changed: true}
		w.trees[instance] = t
	}
	return t
}

// markTree tells that something in the tree of a workload's instance has changed.
func (w *Watcher) markTree(workload string) {
	if w.round.Load() == 0 {
		return // all are told anew when that changes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	wl, ok := w.tracked[workload]
	if !ok {
		return
	}
	if t := w.treeOfInstance(wl.Instance); !t.changed {
		t.changed = true
		w.markStatus(workload)
	}
}

// postTree offers the tree of a workload's instance if it has changed, and enough time has passed. In between it comes
// again for what it is by then. What is not all seen is not told: what a tree does not have counts as gone.
func (w *Watcher) postTree(workload string, instance target.Instance) {
	if w.round.Load() == 0 || !w.seen(w.targets.WorkloadsOf(instance)) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tracked[workload].Instance != instance {
		return
	}
	t, now := w.treeOfInstance(instance), w.now()
	if !t.changed {
		return
	}
	pause := w.config.StatusInterval * time.Duration(max(t.objects, objectsPerTree)) / objectsPerTree
	if wait := t.at.Add(pause).Sub(now); !t.at.IsZero() && wait > 0 {
		w.statuses.AddAfter(workload, wait)
		return
	}
	t.changed, t.at, t.edition = false, now, max(now.UnixMicro(), t.edition+1)
	w.sink.Offer(observe.Tree{Workload: instance, Edition: t.edition, Objects: func() []observe.TreeObject { return w.tree(instance) }})
}

// tree returns all objects of an instance as they are now: those that its workloads list, in their order, and what descends
// from them, by name.
func (w *Watcher) tree(instance target.Instance) []observe.TreeObject {
	g := growth{w: w, instance: instance, at: map[types.UID]int{}, listed: map[target.Ref]bool{}, families: map[types.UID]*health.Dependents{}}
	parts := w.targets.WorkloadsOf(instance)
	members := map[types.UID]health.Dependent{}
	for _, part := range parts {
		g.list(part)
		maps.Copy(members, w.board.members(part.Name))
	}
	g.derive()
	g.own()
	g.judge(members)
	out := g.prune()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trees[instance]; t != nil {
		t.objects = len(out)
	}
	return out
}

// growth is a tree that is being made.
type growth struct {
	w        *Watcher
	instance target.Instance
	objects  []observe.TreeObject
	at       map[types.UID]int // where an object is among them
	listed   map[target.Ref]bool
	families map[types.UID]*health.Dependents // what is judged below an object that is not judged itself
}

// list adds what a workload lists.
func (g *growth) list(part target.Workload) {
	for _, s := range g.w.ResourceStatuses(part.Name) {
		if g.listed[s.Ref] {
			continue
		}
		g.listed[s.Ref] = true
		id := target.Identity{Ref: s.Ref}
		if current, ok := g.w.targets.Current(s.Ref); ok && s.State == target.Present {
			id = current
			g.at[id.UID] = len(g.objects)
		}
		g.objects = append(g.objects, observe.TreeObject{
			Object: id, Version: s.Version, Listed: true, ResourceID: s.ID, State: s.State,
			Health: s.Health, Reason: s.Reason, Cause: s.Cause,
		})
	}
}

// derive adds what exists besides and belongs to the instance.
func (g *growth) derive() {
	first := len(g.objects)
	for _, id := range g.w.targets.ObjectsOf(g.instance) {
		current, ok := g.w.targets.Current(id.Ref)
		if id.UID == "" || !ok || current.UID != id.UID || g.listed[id.Ref] {
			continue
		}
		isOurs := func(c target.Attribution) bool { return c.Instance == g.instance }
		if slices.ContainsFunc(g.w.targets.Attributions(id), isOurs) {
			g.objects = append(g.objects, observe.TreeObject{Object: id, Health: string(health.Unknown), Reason: "NotJudged"})
		}
	}
	slices.SortFunc(g.objects[first:], func(a, b observe.TreeObject) int {
		x, y := a.Object, b.Object
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Group, y.Group))
	})
	for i := first; i < len(g.objects); i++ {
		g.at[g.objects[i].Object.UID] = i
	}
}

// own puts each object below its first owner in the tree, its controller first, and nothing below itself.
func (g *growth) own() {
	for i := range g.objects {
		known := g.w.targets.Known(g.objects[i].Object.UID)
		if len(known) == 0 || known[0].UID != g.objects[i].Object.UID {
			continue
		}
		for _, owner := range known[0].Owners {
			if at, ok := g.at[owner.UID]; ok && !g.isBelow(at, i) {
				g.objects[i].Owner = owner.UID
				break
			}
		}
	}
}

// isBelow reports whether an object is another, or below it, as far as owners are known by now.
func (g *growth) isBelow(at, other int) bool {
	for {
		if at == other {
			return true
		}
		owner, ok := g.at[g.objects[at].Owner]
		if !ok {
			return false
		}
		at = owner
	}
}

// judge puts in the verdicts: of what is judged its own, and of what stands above that what it comes to.
func (g *growth) judge(members map[types.UID]health.Dependent) {
	for i := range g.objects {
		o := &g.objects[i]
		m, ok := members[o.Object.UID]
		if !ok || o.Listed {
			continue
		}
		o.Health, o.Reason, o.Cause = string(m.Status), m.Reason, m.Message
		m.Via = health.OwnerPath{}
		for at, ok := g.at[o.Owner]; ok && !g.objects[at].Listed; at, ok = g.at[g.objects[at].Owner] {
			uid := g.objects[at].Object.UID
			if _, judged := members[uid]; judged {
				continue
			}
			if g.families[uid] == nil {
				g.families[uid] = &health.Dependents{}
			}
			g.families[uid].Set(m)
		}
	}
	for uid, family := range g.families {
		o := &g.objects[g.at[uid]]
		// Of itself nothing is known; if all below it is well, so is it.
		joint := health.Verdict{Status: health.Healthy}
		family.Each(func(m health.Dependent) {
			if m.Status != health.Healthy {
				joint.Status = m.Status
			}
		})
		if joint.Status != health.Healthy {
			own := health.Assessment{Verdict: health.Verdict{Status: health.Unknown}, Subject: o.Object.Kind + " " + o.Object.Name}
			joint = family.Combine(o.Object.GroupKind(), own).Verdict
		}
		o.Health, o.Reason, o.Cause = string(joint.Status), joint.Reason, joint.Message
	}
}

// prune leaves out what only a question once told of, if nothing in the tree needs it, and the ReplicaSets of earlier
// revisions, which own nothing.
func (g *growth) prune() []observe.TreeObject {
	owners := map[types.UID]bool{}
	for _, o := range g.objects {
		owners[o.Owner] = true
	}
	return slices.DeleteFunc(g.objects, func(o observe.TreeObject) bool {
		if o.Listed || owners[o.Object.UID] {
			return false
		}
		return o.Object.Group == "apps" && o.Object.Kind == "ReplicaSet" || !g.w.follows(o.Object.GroupKind())
	})
}
