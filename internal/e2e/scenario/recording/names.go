package recording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generated is a name that the API server or a controller has generated.
type generated struct {
	name      string
	kind      string
	prefix    string    // of the names of its siblings
	createdAt time.Time // when it was created, or first mentioned
	// content is the content of the object without names, and with the times of the recording.
	content string
}

// nameCollector collects the generated names.
type nameCollector struct {
	draft
	clock    clock
	prefixes map[string]string // prefix → kind of those who bear it
	found    map[string]*generated
}

// generatedNames returns the names that differ in each run. Siblings are together, in an order that is the same in every run: by
// age, and for equal ages by content.
func generatedNames(d draft, times clock) [][]*generated {
	c := nameCollector{draft: d, clock: times, prefixes: map[string]string{}, found: map[string]*generated{}}
	for _, obj := range d.objects {
		switch kind := obj.GetKind(); {
		case obj.GetGenerateName() != "":
			c.prefixes[obj.GetGenerateName()] = kind
		case kind == "ReplicaSet" || kind == "Job" || kind == "DaemonSet":
			c.prefixes[obj.GetName()+"-"] = podKind
		case kind == "Certificate": // the Secret that has its next key
			c.prefixes[obj.GetName()+"-"] = "Secret"
		}
	}
	for _, obj := range d.objects {
		createdAt := obj.GetCreationTimestamp().UTC()
		c.add(obj.GetName(), createdAt)
		if cron := ownerOf(obj, "CronJob"); cron != "" {
			c.found[obj.GetName()] = &generated{name: obj.GetName(), kind: "Job", prefix: cron + "-", createdAt: createdAt}
		}
	}
	for _, e := range d.events {
		for _, name := range append(token.FindAllString(e.text("message"), -1), e.about.name) {
			c.add(name, e.first)
		}
	}
	c.describe()
	return c.siblings()
}

// add records a name if it is generated.
func (c *nameCollector) add(name string, createdAt time.Time) {
	cut := strings.LastIndexByte(name, '-') + 1
	kind, ok := c.prefixes[name[:cut]]
	if ok && c.found[name] == nil && randomSuffix.MatchString(name[cut:]) {
		c.found[name] = &generated{name: name, kind: kind, prefix: name[:cut], createdAt: createdAt}
	}
}

// describe sets the values that distinguish siblings.
func (c *nameCollector) describe() {
	for _, g := range c.found {
		var text strings.Builder
		for _, obj := range c.objects {
			if obj.GetKind() == g.kind && obj.GetName() == g.name {
				fmt.Fprintf(&text, "there %v\n", rewriteTexts(obj.Object, c.anonymous(g.name)))
			}
		}
		for _, e := range c.events {
			if e.about.kind == g.kind && e.about.name == g.name {
				for _, field := range []string{"eventTime", "firstTimestamp", "lastTimestamp", "type", "reason", "message"} {
					fmt.Fprint(&text, c.anonymous(g.name)(e.text(field)), " ")
				}
				fmt.Fprintln(&text, e.count())
			}
		}
		g.content = text.String()
	}
}

// anonymous returns a function that removes the parts of a text that differ in each run.
func (c *nameCollector) anonymous(self string) func(string) string {
	return func(text string) string {
		text = c.clock.rewrite(text)
		text = uuid.ReplaceAllString(text, "uid")
		text = identifier.ReplaceAllString(text, "id")
		text = address.ReplaceAllString(text, "address")
		text = accessVolume.ReplaceAllString(text, theAccessVolume)
		return token.ReplaceAllStringFunc(text, func(t string) string {
			switch {
			case t == self:
				return "self"
			case c.found[t] != nil:
				return "other"
			}
			return t
		})
	}
}

// siblings groups the names, Jobs first, and orders each group.
func (c *nameCollector) siblings() [][]*generated {
	groups := map[string][]*generated{}
	for _, g := range c.found {
		groups[g.prefix] = append(groups[g.prefix], g)
	}
	var out [][]*generated
	for _, group := range groups {
		slices.SortFunc(group, func(a, b *generated) int { return a.createdAt.Compare(b.createdAt) })
		for rest := group; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].createdAt.Sub(rest[n-1].createdAt) < burstGap {
				n++
			}
			// Siblings with the same content are interchangeable.
			slices.SortFunc(rest[:n], func(a, b *generated) int { return strings.Compare(a.content, b.content) })
			rest = rest[n:]
		}
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b []*generated) int { return rank(a[0].kind) - rank(b[0].kind) })
	return out
}

// ownerOf returns the name of an object's owner of a kind; empty without one.
func ownerOf(obj *unstructured.Unstructured, kind string) string {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == kind {
			return owner.Name
		}
	}
	return ""
}
