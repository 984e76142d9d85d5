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
func (ds *Dependents) Set(d Dependent) bool {
	kept, known := ds.byUID[d.UID]
	changed := true
	if known {
		old := kept.dependent(d.UID)
		changed = keyOf(old) != keyOf(d) || old.Revision != d.Revision
	}
	if !changed && (d.Status == Healthy || kept.since.Equal(d.Since)) {
		ds.byUID[d.UID] = keep(d)
		return false
	}
	if known {
		ds.Remove(d.UID)
	}
	if ds.byUID == nil {
		ds.byUID, ds.groups, ds.kinds = map[types.UID]keptDependent{}, map[groupKey]*group{}, map[string]Count{}
		ds.phases, ds.works, ds.revisions = map[PodPhase]int{}, map[OwnerPath]int{}, map[string]revisionPods{}
	}
	ds.byUID[d.UID] = keep(d)
	counted := d
	counted.Assessment = d.orExpected(ds.expected)
	ds.count(counted, 1)
	if counted.Status != Healthy {
		ds.addToGroup(counted)
	}
	return changed
}

func (ds *Dependents) addToGroup(d Dependent) {
	key := keyOf(d)
	g := ds.groups[key]
	if g == nil {
		g = &group{uids: map[types.UID]struct{}{}}
		ds.groups[key] = g
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
func (ds *Dependents) Remove(uid types.UID) bool {
	kept, known := ds.byUID[uid]
	if !known {
		return false
	}
	delete(ds.byUID, uid)
	d := kept.dependent(uid)
	d.Assessment = d.orExpected(ds.expected)
	ds.count(d, -1)
	if d.Status != Healthy {
		ds.removeFromGroup(d)
	}
	return true
}

func (ds *Dependents) removeFromGroup(d Dependent) {
	key := keyOf(d)
	g := ds.groups[key]
	delete(g.uids, d.UID)
	if len(g.uids) == 0 {
		delete(ds.groups, key)
		return
	}
	if d.Since.IsZero() || !d.Since.Equal(g.since) {
		return
	}
	g.since = time.Time{}
	for uid := range g.uids {
		g.startAt(ds.byUID[uid].since)
	}
}

func (ds *Dependents) count(d Dependent, n int) {
	c := ds.kinds[d.Kind]
	c.Total += n
	if d.Status == Healthy {
		c.Healthy += n
	}
	if ds.kinds[d.Kind] = c; c.Total == 0 {
		delete(ds.kinds, d.Kind)
	}
	if d.Kind != podKind.Kind {
		return
	}
	phase := d.phase()
	ds.phases[phase] += n
	if d.HasCompleted() {
		ds.completed += n
	}
	if phase == Serving || phase == Ended && d.Status == Healthy {
		if ds.works[d.Via] += n; ds.works[d.Via] == 0 {
			delete(ds.works, d.Via)
		}
	}
	if phase != Terminating && phase != Ended {
		ds.countRevision(d.revision(), phase, n)
	}
}

func (ds *Dependents) countRevision(revision string, phase PodPhase, n int) {
	pods := ds.revisions[revision]
	pods.active += n
	if phase == Serving {
		pods.serving += n
	}
	if ds.revisions[revision] = pods; pods.active == 0 {
		delete(ds.revisions, revision)
	}
}

// Len returns the number of dependents.
func (ds *Dependents) Len() int { return len(ds.byUID) }

// Each visits the dependents, in no order.
func (ds *Dependents) Each(visit func(Dependent)) {
	for uid, kept := range ds.byUID {
		d := kept.dependent(uid)
		d.Assessment = d.orExpected(ds.expected)
		visit(d)
	}
}

// Count returns the counts of a kind.
func (ds *Dependents) Count(kind string) Count { return ds.kinds[kind] }

// Pods returns the counts of the Pods, without those that have completed: they are not to be ready again.
func (ds *Dependents) Pods() Count {
	all := ds.kinds[podKind.Kind]
	return Count{all.Total - ds.completed, all.Healthy - ds.completed}
}

// activePods returns the number of Pods that are neither being deleted nor ended.
func (ds *Dependents) activePods() int {
	return ds.kinds[podKind.Kind].Total - ds.phases[Terminating] - ds.phases[Ended]
}
