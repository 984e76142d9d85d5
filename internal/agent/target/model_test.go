package target

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// model is a naive Registry: it keeps lists, and searches them completely for each answer.
type model struct {
	workloads []Workload
	objects   map[types.UID]Object
	scopes    map[string]bool // by kind: whether it is namespaced
	deleted   map[types.UID]time.Time
	current   map[Ref]types.UID // the existing object of a name
}

func newModel() *model {
	return &model{
		objects: map[types.UID]Object{}, scopes: map[string]bool{}, deleted: map[types.UID]time.Time{}, current: map[Ref]types.UID{},
	}
}

// clearCurrent records that a known object no longer exists under its name.
func (m *model) clearCurrent(uid types.UID) {
	if ref := m.objects[uid].Ref; m.current[ref] == uid {
		delete(m.current, ref)
	}
}

// isWatched reports whether an object exists and a watch covers it.
func (m *model) isWatched(uid types.UID) bool {
	o, known := m.objects[uid]
	return known && m.deleted[uid].IsZero() && o.LookedUp.IsZero()
}

func (m *model) remove(uid types.UID) {
	m.clearCurrent(uid)
	delete(m.objects, uid)
	delete(m.deleted, uid)
}

func (m *model) attributionsByListing(ref Ref, itself bool) []string {
	var out []string
	for _, w := range m.workloads {
		for _, res := range w.Resources {
			at := res.Ref
			if namespaced, known := m.scopes[at.Kind]; known && !namespaced {
				at.Namespace = ""
			} else if known && at.Namespace == "" {
				at.Namespace = w.defaultNamespace()
			}
			if at == ref {
				res.Ref = at
				out = append(out, fmt.Sprint(Attribution{Workload: w.Name, Instance: w.Instance, Resource: res, Listed: itself}))
			}
		}
	}
	return out
}

func (m *model) attributions(id Identity) []string {
	level, seen := []Identity{id}, map[types.UID]bool{id.UID: true}
	var labels []Instance
	for itself := true; len(level) > 0; itself = false {
		var found []string
		var above []Identity
		for _, at := range level {
			o, known := m.objects[at.UID]
			switch {
			case itself || known && at.UID != id.UID:
				ref := at.Ref
				if !itself {
					ref = o.Ref
				}
				found = append(found, m.attributionsByListing(ref, itself)...)
			default:
				found = append(found, m.attributionsByListing(at.Ref, false)...)
				if at.Namespace != "" {
					found = append(found, m.attributionsByListing(clusterScoped(at).Ref, false)...)
				}
			}
			if labels == nil {
				labels = o.Instances
			}
			for _, owner := range o.Owners {
				known, ok := m.objects[owner.UID]
				valid := !ok || known.Ref == owner.Ref || known.Ref == clusterScoped(owner).Ref
				if valid && !seen[owner.UID] {
					seen[owner.UID] = true
					above = append(above, owner)
				}
			}
		}
		if found != nil {
			slices.Sort(found)
			return found
		}
		level = above
	}
	var found []string
	for _, w := range m.workloads {
		for _, label := range labels {
			if label == w.Instance && m.labelCounts(w, id.Namespace) {
				found = append(found, fmt.Sprint(Attribution{Workload: w.Name, Instance: w.Instance}))
			}
		}
	}
	slices.Sort(found)
	return found
}

// labelCounts reports whether a namespace is listed or in the annotation, or none is.
func (m *model) labelCounts(w Workload, namespace string) bool {
	named, counted := slices.Clone(w.LabelNamespaces), []string(nil)
	for _, res := range w.Resources {
		if res.Namespace != "" {
			named = append(named, res.Namespace)
		} else if m.scopes[res.Kind] {
			counted = append(counted, w.defaultNamespace())
		}
	}
	everywhere := len(named) == 0 && w.Instance.Type == HelmWorkloadInstance
	return namespace == "" || everywhere || slices.Contains(named, namespace) || slices.Contains(counted, namespace)
}

// ignored returns the objects whose labels do not count for a workload.
func (m *model) ignored(w Workload) []string {
	var out []string
	for _, o := range m.objects {
		attributed := slices.ContainsFunc(m.attributions(o.Identity), func(text string) bool { return strings.HasPrefix(text, "{"+w.Name+" ") })
		if m.deleted[o.UID].IsZero() && slices.Contains(o.Instances, w.Instance) && !attributed && !m.labelCounts(w, o.Namespace) {
			out = append(out, o.String())
		}
	}
	slices.Sort(out)
	return out
}

// universe generates random steps from a small set of identities, so that they often refer to the same objects.
type universe struct {
	*rand.Rand
	ids []Identity
}

func newUniverse(seed uint64) universe {
	u := universe{Rand: rand.New(rand.NewPCG(seed, 1))}
	for _, kind := range []string{"A", "B", "C", "Cluster"} {
		for _, namespace := range []string{"x", "y"} {
			for _, name := range []string{"n", "m"} {
				for incarnation := range 2 {
					id := Identity{Ref: Ref{Group: "g", Kind: kind, Namespace: namespace, Name: name}}
					if kind == "Cluster" {
						id.Namespace = ""
					}
					id.UID = types.UID(fmt.Sprintf("%s-%d", id.Ref, incarnation))
					u.ids = append(u.ids, id)
				}
			}
		}
	}
	return u
}

func (u universe) id() Identity { return u.ids[u.IntN(len(u.ids))] }

// object returns an object with up to two owners. As in owner references, an owner has the namespace of the object. Some have
// the UID of an object in another namespace.
func (u universe) object() Object {
	o := Object{Identity: u.id()}
	for range u.IntN(3) {
		owner := u.id()
		if owner.Kind == "Cluster" || owner.Namespace == o.Namespace || u.IntN(4) == 0 {
			owner.Namespace = o.Namespace
			o.Owners = append(o.Owners, owner)
		}
	}
	for range u.IntN(2) {
		o.Instances = append(o.Instances, u.instance())
	}
	if u.IntN(4) == 0 {
		o.LookedUp = start
	}
	return o
}

func (u universe) instance() Instance {
	return Instance{Type: []Type{WorkloadInstance, HelmWorkloadInstance}[u.IntN(2)], ID: u.Int64N(3)}
}

func (u universe) workload() Workload {
	w := Workload{Name: fmt.Sprint("w", u.IntN(3)), Instance: u.instance()}
	if u.IntN(4) == 0 {
		w.LabelNamespaces = []string{u.id().Namespace}
	}
	for range u.IntN(4) {
		res := Resource{Ref: u.id().Ref, Version: "v1", ID: u.Int64N(100)}
		if u.IntN(4) == 0 {
			res.Namespace = ""
		}
		w.Resources = append(w.Resources, res)
	}
	return w
}

// step applies one random change to the registry and to the model, and describes it.
func (u universe) step(r *Registry, m *model, now time.Time) string {
	switch u.IntN(10) {
	case 0, 1:
		w := u.workload()
		r.Track(w)
		m.workloads = append(slices.DeleteFunc(m.workloads, func(o Workload) bool { return o.Name == w.Name }), w)
		return fmt.Sprint("track ", w)
	case 2:
		name := fmt.Sprint("w", u.IntN(3))
		r.Forget(name)
		m.workloads = slices.DeleteFunc(m.workloads, func(o Workload) bool { return o.Name == name })
		return "forget " + name
	case 3:
		id := u.id()
		r.Delete(id.UID, now)
		if _, known := m.objects[id.UID]; known && m.deleted[id.UID].IsZero() {
			m.deleted[id.UID] = now
			m.clearCurrent(id.UID)
		}
		return fmt.Sprint("delete ", id)
	case 4:
		kind := u.id().GroupKind()
		namespaced := kind.Kind != "Cluster"
		r.SetScope(kind, namespaced)
		m.scopes[kind.Kind] = namespaced
		return fmt.Sprint("scope ", kind)
	case 5:
		if u.IntN(5) > 0 {
			return "nothing"
		}
		kind := u.id().GroupKind()
		r.DropKind(kind)
		for uid, o := range m.objects {
			if o.GroupKind() == kind {
				m.remove(uid)
			}
		}
		return fmt.Sprint("drop ", kind)
	case 6:
		o := u.object()
		r.UpsertDeleted(o, now)
		if !m.isWatched(o.UID) {
			m.objects[o.UID], m.deleted[o.UID] = o, now
			m.clearCurrent(o.UID)
		}
		return fmt.Sprint("upsert deleted ", o)
	default:
		o := u.object()
		r.Upsert(o)
		if m.isWatched(o.UID) {
			o.LookedUp = time.Time{}
		}
		m.objects[o.UID] = o
		delete(m.deleted, o.UID)
		m.current[o.Ref] = o.UID
		return fmt.Sprint("upsert ", o)
	}
}

// prune removes from the model the objects that the registry pruned, and checks their retention.
func (m *model) prune(t *testing.T, r *Registry, now time.Time) {
	t.Helper()
	r.Prune(now)
	for uid, o := range m.objects {
		_, known := r.Object(uid)
		deletedAt, deleted := m.deleted[uid]
		switch {
		case known && deleted && now.Sub(deletedAt) > retainAttributed:
			t.Errorf("%s is still known %s after its deletion", uid, now.Sub(deletedAt))
		case !known && !deleted && o.LookedUp.IsZero():
			t.Errorf("%s exists, but was pruned", uid)
		case !known && deleted && now.Sub(deletedAt) <= retainUnattributed:
			t.Errorf("%s was pruned %s after its deletion", uid, now.Sub(deletedAt))
		}
		if !known {
			m.remove(uid)
		}
	}
}

func TestRegistry_RandomHistories_MatchModel(t *testing.T) {
	seed := rand.Uint64()
	for history := range uint64(60) {
		checkHistory(t, seed+history)
		if t.Failed() {
			t.Fatalf("seed %d", seed+history)
		}
	}
}

func checkHistory(t *testing.T, seed uint64) {
	t.Helper()
	u, r, now := newUniverse(seed), NewRegistry(), start
	m := newModel()
	before := map[types.UID][]string{}
	for range 150 {
		done := u.step(r, m, now)
		now = now.Add(time.Duration(u.IntN(120)) * time.Second)
		if u.IntN(10) == 0 {
			m.prune(t, r, now)
		}
		out := r.Drain()
		for _, id := range u.ids {
			want := m.attributions(id)
			var got []string
			for _, c := range r.Attributions(id) {
				got = append(got, fmt.Sprint(c))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("after %s: attributions of %s are %q, want %q", done, id.UID, got, want)
			}
			// Drain returns only known objects by UID.
			if _, known := m.objects[id.UID]; known && !slices.Equal(before[id.UID], want) && !drained(out, id) {
				t.Fatalf("after %s: attributions of %s changed from %q to %q, but Drain returned %v", done, id.UID, before[id.UID], want, out)
			}
			before[id.UID] = want
			if existing, ok := r.ExistingObject(id.Ref); existing.UID != m.current[id.Ref] || ok != (existing.UID != "") {
				t.Fatalf("after %s: the existing object of %s is %q, %t, want %q", done, id.Ref, existing.UID, ok, m.current[id.Ref])
			}
		}
		for _, w := range m.workloads {
			var got []string
			for _, ref := range r.LabelUse(w.Name).Ignored {
				got = append(got, ref.String())
			}
			if want := m.ignored(w); !slices.Equal(got, want) {
				t.Fatalf("after %s: ignored labels of %v are on %q, want %q", done, w, got, want)
			}
		}
	}
	wipe(t, r, u.ids)
}

// wipe removes all workloads and objects, and expects an empty registry.
func wipe(t *testing.T, r *Registry, ids []Identity) {
	t.Helper()
	for _, w := range r.WorkloadNames() {
		r.Forget(w)
	}
	now := start.Add(100 * time.Hour)
	for _, id := range ids {
		r.Delete(id.UID, now)
	}
	r.Prune(now.Add(retainAttributed + 1))
	r.Drain()
	expectEmpty(t, r)
}

func expectEmpty(t *testing.T, r *Registry) {
	t.Helper()
	g := r.graph
	for name, left := range map[string]int{
		"workloads": len(r.workloads), "listed": len(r.listed), "instances": len(r.instances), "affected": len(r.affected),
		"nodes": len(g.nodes), "children": len(g.children), "latest": len(g.latest), "earlier": len(g.earlier),
		"referenced": len(g.referenced), "aliases": len(g.aliases),
		"labelled": len(g.labelled),
	} {
		if left > 0 {
			t.Errorf("%s has %d entries left, want none", name, left)
		}
	}
}

func TestRegistry_AllRemoved_IsEmpty(t *testing.T) {
	r := shop(t)
	parent := clusterScoped(ident(nodeKind, "parent", "uid-parent"))
	r.Upsert(owned(parent))
	r.Upsert(labelled(owned(ident(podKind, "p", "uid-p"), ident(nodeKind, "parent", parent.UID)), 1))
	r.Forget("shop")
	for _, uid := range []types.UID{"uid-p", webPod.UID, webRS.UID, web.UID, parent.UID} {
		r.Delete(uid, start)
		r.Prune(start.Add(retainAttributed + 1))
	}
	r.Drain()
	expectEmpty(t, r)
}

func TestRegistry_ConcurrentUse(t *testing.T) {
	r := NewRegistry()
	var users sync.WaitGroup
	for user := range 4 {
		users.Go(func() {
			u := newUniverse(uint64(user))
			m := newModel()
			for range 300 {
				u.step(r, m, start)
				id := u.id()
				r.Attributions(id)
				r.AttributionsByName(id, start)
				r.InferOwner(id.Ref)
				r.UnresolvedOwners(id)
				r.ExistingObject(id.Ref)
				r.ExistingObjects(id.GroupKind(), "")
				r.Kinds()
				r.Namespaces()
				for _, name := range r.WorkloadNames() {
					r.Workload(name)
				}
				r.Drain()
				r.Prune(start.Add(time.Hour))
			}
		})
	}
	users.Wait()
	u := newUniverse(0)
	r.Upsert(owned(web))
	r.Track(workload("shop", 1, web))
	expectAttributions(t, r, web, "shop: Deployment app/web itself")
	wipe(t, r, append(u.ids, web))
}
