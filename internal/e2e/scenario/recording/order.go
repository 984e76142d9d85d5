package recording

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// placeholder is the UID of an object in a recording.
func placeholder(kind, name string) types.UID {
	return types.UID("uid-" + strings.ToLower(kind) + "-" + name)
}

// dictionary has the replacements of the names, UIDs and addresses of a draft.
func (d draft) dictionary(times clock) dictionary {
	out := newDictionary()
	for _, group := range generatedNames(d, times) {
		for i, g := range group {
			if g.kind == "Job" { // named for the minute it was scheduled for
				out.tokens[g.name] = fmt.Sprintf("%s%d", g.prefix, int(epoch.Add(time.Minute).Unix()/60)+i)
				continue
			}
			prefix := strings.TrimSuffix(g.prefix, "-")
			out.tokens[prefix+"-"] = cmp.Or(out.tokens[prefix], prefix) + "-" // a generateName
			out.tokens[g.name] = fmt.Sprintf("%s-%05d", cmp.Or(out.tokens[prefix], prefix), i+1)
		}
	}
	d.addUIDs(out)
	d.addAddresses(out)
	return out
}

// addUIDs adds a replacement with the name of the object for each UID. Later incarnations of a name have a number.
func (d draft) addUIDs(out dictionary) {
	type incarnation struct {
		reference
		since time.Time
	}
	var all []incarnation
	for _, obj := range d.objects {
		since := obj.GetCreationTimestamp().UTC()
		all = append(all, incarnation{reference{obj.GetKind(), obj.GetName(), string(obj.GetUID())}, since})
	}
	for _, e := range d.events {
		all = append(all, incarnation{e.about, e.first})
	}
	slices.SortStableFunc(all, func(a, b incarnation) int { return a.since.Compare(b.since) })
	count := map[types.UID]int{}
	for _, i := range all {
		if _, ok := out.tokens[i.uid]; ok || !uuid.MatchString(i.uid) {
			continue
		}
		uid := placeholder(i.kind, cmp.Or(out.tokens[i.name], i.name))
		count[uid]++
		out.tokens[i.uid] = string(uid)
		if n := count[uid]; n > 1 {
			out.tokens[i.uid] = fmt.Sprintf("%s-again-%d", uid, n-1)
		}
	}
}

// addAddresses numbers the addresses of pods and services, each in the order of their names.
func (d draft) addAddresses(out dictionary) {
	name := func(obj *unstructured.Unstructured) string { return cmp.Or(out.tokens[obj.GetName()], obj.GetName()) }
	objects := slices.SortedFunc(slices.Values(d.objects), func(a, b *unstructured.Unstructured) int {
		return strings.Compare(name(a), name(b))
	})
	pods, services := 0, 0
	for _, obj := range objects {
		if ip, _, _ := unstructured.NestedString(obj.Object, "status", "podIP"); ip != "" && obj.GetKind() == podKind {
			pods++
			out.addresses[ip] = fmt.Sprintf(podAddress, pods)
		}
		if ip, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP"); address.MatchString(ip) {
			services++
			out.addresses[ip] = fmt.Sprintf(serviceAddress, services)
		}
	}
}

// place is the position of an object or its Event in a recording.
type place struct {
	made bool // for another one
	rank int
	name string
	uid  string
}

func (p place) compare(q place) int {
	if p.made != q.made {
		if q.made {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.rank, q.rank), strings.Compare(p.name, q.name), strings.Compare(p.uid, q.uid))
}

// order sorts objects and Events, which have the recording's names already.
func (d draft) order() {
	places := map[string]place{}
	of := func(obj *unstructured.Unstructured) place {
		return place{!Listed(obj), rank(obj.GetKind()), obj.GetName(), string(obj.GetUID())}
	}
	for _, obj := range d.objects {
		places[string(obj.GetUID())] = of(obj)
		places[obj.GetKind()+"/"+obj.GetName()] = of(obj) // for Events without a UID: the taint manager's
	}
	slices.SortStableFunc(d.objects, func(a, b *unstructured.Unstructured) int { return of(a).compare(of(b)) })

	about := func(e *normalizedEvent) place {
		if p, ok := places[cmp.Or(e.about.uid, e.about.kind+"/"+e.about.name)]; ok {
			return p
		}
		return place{true, rank(e.about.kind), e.about.name, e.about.uid}
	}
	slices.SortStableFunc(d.events, func(a, b *normalizedEvent) int { return about(a).compare(about(b)) })
	for rest := d.events; len(rest) > 0; {
		n := 1
		for n < len(rest) && alike(rest[0], rest[n]) {
			n++
		}
		slices.SortStableFunc(rest[:n], func(a, b *normalizedEvent) int {
			return strings.Compare(a.text("message"), b.text("message"))
		})
		rest = rest[n:]
	}
}

// suffix matches the end of a replaced generated name.
var suffix = regexp.MustCompile(`-\d{5,}\b`)

// alike reports whether two Events are equal except for their objects, which were created at the same time. The order of their
// creation is random, so their names decide.
func alike(a, b *normalizedEvent) bool {
	return a.about == b.about && a.text("reason") == b.text("reason") && a.text("firstTimestamp") == b.text("firstTimestamp") &&
		suffix.ReplaceAllString(a.text("message"), "") == suffix.ReplaceAllString(b.text("message"), "")
}
