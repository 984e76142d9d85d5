package health

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// CountsAsDependent reports whether objects of a kind are members of the family of what they descend from: pods, and what leads to
// the pods of a Service. What stands between a resource and its pods is judged by them.
func CountsAsDependent(kind schema.GroupKind) bool {
	return kind == podKind || kind == schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
}

var (
	podKind     = schema.GroupKind{Kind: "Pod"}
	serviceKind = schema.GroupKind{Kind: "Service"}
)

// Dependent is an object that descends from a resource, and is judged.
type Dependent struct {
	UID        types.UID
	Kind, Name string
	// Via names the owners between the resource and the object, the resource's own child first, such as
	// "ReplicaSet web-78"; empty if the resource owns it.
	Via string
	Assessment
}

// part is what a member contributes.
func (m Dependent) part() PodPhase {
	if m.Phase == Idle && m.Status == Healthy {
		return Serving
	}
	return m.Phase
}

// Count tells how many objects of a kind there are, and how many of them are Healthy.
type Count struct{ Total, Healthy int }

// Dependents holds the assessments of what descends from a resource, so that a change of one object does not read the
// others: members that are not Healthy for the same cause are one group, and all else is counted. The zero value is
// empty. It is not safe for concurrent use.
type Dependents struct {
	members map[types.UID]Dependent
	groups  map[cause]*group
	kinds   map[string]Count
	parts   map[PodPhase]int // pods
	works   map[string]int   // by via: pods that serve, or have completed
}

// cause is what the members of a group have in common.
type cause struct {
	kind, via string
	part      PodPhase
	Verdict
}

// group are the members that are not Healthy for one cause.
type group struct {
	members map[types.UID]struct{}
	since   time.Time // the earliest since it was told of one of its members; zero if none tells
}

// Set puts in a member, or replaces it. It reports whether its verdict is news.
func (f *Dependents) Set(m Dependent) bool {
	old, known := f.members[m.UID]
	if known && old.Verdict == m.Verdict && old.Via == m.Via && old.Kind == m.Kind && old.part() == m.part() {
		f.members[m.UID] = m
		return false
	}
	if known {
		f.Remove(m.UID)
	}
	if f.members == nil {
		f.members, f.groups, f.kinds = map[types.UID]Dependent{}, map[cause]*group{}, map[string]Count{}
		f.parts, f.works = map[PodPhase]int{}, map[string]int{}
	}
	f.members[m.UID] = m
	f.count(m, 1)
	if m.Status == Healthy {
		return true
	}
	key := causeOf(m)
	g := f.groups[key]
	if g == nil {
		g = &group{members: map[types.UID]struct{}{}}
		f.groups[key] = g
	}
	g.members[m.UID] = struct{}{}
	if !m.Since.IsZero() && (g.since.IsZero() || m.Since.Before(g.since)) {
		g.since = m.Since
	}
	return true
}

func causeOf(m Dependent) cause { return cause{m.Kind, m.Via, m.part(), m.Verdict} }

// Remove takes out a member that is gone. It reports whether it was there.
func (f *Dependents) Remove(uid types.UID) bool {
	m, known := f.members[uid]
	if !known {
		return false
	}
	delete(f.members, uid)
	f.count(m, -1)
	key := causeOf(m)
	if g := f.groups[key]; g != nil {
		delete(g.members, uid)
		if len(g.members) == 0 {
			delete(f.groups, key)
		}
	}
	return true
}

func (f *Dependents) count(m Dependent, n int) {
	c := f.kinds[m.Kind]
	c.Total += n
	if m.Status == Healthy {
		c.Healthy += n
	}
	if f.kinds[m.Kind] = c; c.Total == 0 {
		delete(f.kinds, m.Kind)
	}
	if m.Kind != podKind.Kind {
		return
	}
	f.parts[m.part()] += n
	if m.part() == Serving || m.part() == Ended && m.Status == Healthy {
		if f.works[m.Via] += n; f.works[m.Via] == 0 {
			delete(f.works, m.Via)
		}
	}
}

// Len returns the number of members.
func (f *Dependents) Len() int { return len(f.members) }

// Each visits the members, in no order.
func (f *Dependents) Each(visit func(Dependent)) {
	for _, m := range f.members {
		visit(m)
	}
}

// Count tells of the members of a kind.
func (f *Dependents) Count(kind string) Count { return f.kinds[kind] }

// present returns how many pods there are that neither leave nor have ended.
func (f *Dependents) present() int {
	return f.kinds[podKind.Kind].Total - f.parts[Leaving] - f.parts[Ended]
}

// isFromJob reports whether owners lead to a Job: what it tries and what becomes of that is its own affair.
func isFromJob(via string) bool {
	return strings.HasPrefix(via, "Job ") || strings.Contains(via, " ← Job ")
}
