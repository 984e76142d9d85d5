package health

import (
	"cmp"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// CountsAsDependent reports whether objects of a kind count for the resources that own them: Pods, and the
// EndpointSlices of a Service. Objects between a resource and its Pods, such as ReplicaSets, do not count.
func CountsAsDependent(kind schema.GroupKind) bool {
	return kind == podKind || kind == schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
}

var (
	podKind     = schema.GroupKind{Kind: "Pod"}
	serviceKind = schema.GroupKind{Kind: "Service"}
)

// Dependent is an assessed object that descends from a resource.
type Dependent struct {
	UID        types.UID
	Kind, Name string
	// Via is the owners between the resource and the object.
	Via OwnerPath
	Assessment
}

// phase returns the phase that counts for the resource.
func (d Dependent) phase() PodPhase {
	if d.Phase == NotServing && d.Status == Healthy {
		return Serving
	}
	return d.Phase
}

// keptDependent is a Dependent without its UID. Most Pods of a resource differ in nothing else than their names and starts, and share
// the rest.
type keptDependent struct {
	name  string
	since time.Time
	rest  unique.Handle[Dependent]
}

func keep(d Dependent) keptDependent {
	kept := keptDependent{name: d.Name, since: d.Since}
	d.UID, d.Name, d.Since, d.Recheck = "", "", time.Time{}, time.Time{}
	kept.rest = unique.Make(d)
	return kept
}

// dependent returns the Dependent, without the time of its next check.
func (k keptDependent) dependent(uid types.UID) Dependent {
	d := k.rest.Value()
	d.UID, d.Name, d.Since = uid, k.name, k.since
	return d
}

// Count is the number of objects of a kind, and of the Healthy ones among them.
type Count struct{ Total, Healthy int }

// Dependents holds the assessments of the objects that descend from a resource. It keeps counts and groups up to date,
// so that a change of one object does not read the others. The zero value is empty. It is not safe for concurrent use.
type Dependents struct {
	byUID  map[types.UID]keptDependent
	groups map[groupKey]*group
	kinds  map[string]Count
	phases map[PodPhase]int  // Pods by phase
	works  map[OwnerPath]int // Pods that serve or have completed, by owners

	revisions map[string]revisionPods
	completed int     // Pods
	expected  Verdict // on empty EndpointSlices; zero if they are a fault
}

// revisionPods counts the Pods of one revision that are neither being deleted nor ended, and those among them that serve.
type revisionPods struct{ active, serving int }

// groupKey is the common state of the dependents of a group.
type groupKey struct {
	kind  string
	via   OwnerPath
	phase PodPhase
	Verdict
}

// group holds the dependents that are not Healthy for one cause.
type group struct {
	uids  map[types.UID]struct{}
	since time.Time // the earliest of the dependents'; zero if none has one
}

// revision returns the revision of a Pod: the ReplicaSet that owns it, unless its assessment has one.
func (d Dependent) revision() string { return cmp.Or(d.Revision, d.Via.Last().Name) }

// Set adds a dependent or replaces it. It reports whether its verdict, its owners, its phase or its revision changed.
func (f *Dependents) Set(d Dependent) bool {
	kept, known := f.byUID[d.UID]
	changed := true
	if known {
		old := kept.dependent(d.UID)
		changed = keyOf(old) != keyOf(d) || old.Revision != d.Revision
	}
	if !changed && (d.Status == Healthy || kept.since.Equal(d.Since)) {
		f.byUID[d.UID] = keep(d)
		return false
	}
	if known {
		f.Remove(d.UID)
	}
	if f.byUID == nil {
		f.byUID, f.groups, f.kinds = map[types.UID]keptDependent{}, map[groupKey]*group{}, map[string]Count{}
		f.phases, f.works, f.revisions = map[PodPhase]int{}, map[OwnerPath]int{}, map[string]revisionPods{}
	}
	f.byUID[d.UID] = keep(d)
	counted := d
	counted.Assessment = d.orExpected(f.expected)
	f.count(counted, 1)
	if counted.Status != Healthy {
		f.addToGroup(counted)
	}
	return changed
}

func (f *Dependents) addToGroup(d Dependent) {
	key := keyOf(d)
	g := f.groups[key]
	if g == nil {
		g = &group{uids: map[types.UID]struct{}{}}
		f.groups[key] = g
	}
	g.uids[d.UID] = struct{}{}
	g.startAt(d.Since)
}

// startAt moves the start of the group to a time that is earlier.
func (g *group) startAt(at time.Time) {
	if !at.IsZero() && (g.since.IsZero() || at.Before(g.since)) {
		g.since = at
	}
}

func keyOf(d Dependent) groupKey { return groupKey{d.Kind, d.Via, d.phase(), d.Verdict} }

// Remove removes a dependent. It reports whether it was there.
func (f *Dependents) Remove(uid types.UID) bool {
	kept, known := f.byUID[uid]
	if !known {
		return false
	}
	delete(f.byUID, uid)
	d := kept.dependent(uid)
	d.Assessment = d.orExpected(f.expected)
	f.count(d, -1)
	if d.Status != Healthy {
		f.removeFromGroup(d)
	}
	return true
}

func (f *Dependents) removeFromGroup(d Dependent) {
	key := keyOf(d)
	g := f.groups[key]
	delete(g.uids, d.UID)
	if len(g.uids) == 0 {
		delete(f.groups, key)
		return
	}
	if d.Since.IsZero() || !d.Since.Equal(g.since) {
		return
	}
	g.since = time.Time{}
	for uid := range g.uids {
		g.startAt(f.byUID[uid].since)
	}
}

func (f *Dependents) count(d Dependent, n int) {
	c := f.kinds[d.Kind]
	c.Total += n
	if d.Status == Healthy {
		c.Healthy += n
	}
	if f.kinds[d.Kind] = c; c.Total == 0 {
		delete(f.kinds, d.Kind)
	}
	if d.Kind != podKind.Kind {
		return
	}
	phase := d.phase()
	f.phases[phase] += n
	if d.HasCompleted() {
		f.completed += n
	}
	if phase == Serving || phase == Ended && d.Status == Healthy {
		if f.works[d.Via] += n; f.works[d.Via] == 0 {
			delete(f.works, d.Via)
		}
	}
	if phase != Terminating && phase != Ended {
		f.countRevision(d.revision(), phase, n)
	}
}

func (f *Dependents) countRevision(revision string, phase PodPhase, n int) {
	pods := f.revisions[revision]
	pods.active += n
	if phase == Serving {
		pods.serving += n
	}
	if f.revisions[revision] = pods; pods.active == 0 {
		delete(f.revisions, revision)
	}
}

// Len returns the number of dependents.
func (f *Dependents) Len() int { return len(f.byUID) }

// Each visits the dependents, in no order.
func (f *Dependents) Each(visit func(Dependent)) {
	for uid, kept := range f.byUID {
		d := kept.dependent(uid)
		d.Assessment = d.orExpected(f.expected)
		visit(d)
	}
}

// Count returns the counts of a kind.
func (f *Dependents) Count(kind string) Count { return f.kinds[kind] }

// Pods returns the counts of the Pods, without those that have completed: they are not to be ready again.
func (f *Dependents) Pods() Count {
	all := f.kinds[podKind.Kind]
	return Count{all.Total - f.completed, all.Healthy - f.completed}
}

// activePods returns the number of Pods that are neither being deleted nor ended.
func (f *Dependents) activePods() int {
	return f.kinds[podKind.Kind].Total - f.phases[Terminating] - f.phases[Ended]
}
