package redact

import (
	"slices"
	"strconv"
	"strings"
)

// ruleSet is rules, arranged for a walk.
type ruleSet struct {
	rules []*rule
	// anywhere and annotations are the universal ones, which apply to all fields of all objects.
	anywhere    fieldIndex
	annotations []*rule
}

func newRuleSet(rules []*rule) *ruleSet {
	s := &ruleSet{rules: rules}
	for _, r := range rules {
		switch {
		case !r.universal() || r.action == statusOnly:
		case r.annotation != nil:
			s.annotations = append(s.annotations, r)
		case r.path.anywhere:
			s.anywhere.rules = append(s.anywhere.rules, r)
		}
	}
	return s
}

// fieldIndex finds the rules whose path may start at a field.
type fieldIndex struct {
	rules  []*rule
	recent recentMatches[[]*rule]
}

func (i *fieldIndex) of(field string) []*rule {
	if len(i.rules) == 0 {
		return nil
	}
	if found, known := i.recent.lookup(field); known {
		return found
	}
	var found []*rule
	for _, r := range i.rules {
		if r.path.segments[0].selects(field) {
			found = append(found, r)
		}
	}
	i.recent.store(field, found)
	return found
}

// walk visits an object, and the objects in it, once. It calls hit for each value that one of the rules selects.
type walk struct {
	*ruleSet
	hit   func(r *rule, place []string, value any, set func(any))
	place []string // the names of the fields, and the indexes of the items, above the current value
}

// scope is the rules that apply to all fields of an object, besides the universal ones.
type scope struct{ anywhere, annotations []*rule }

// with adds a rule. It does not change the slices of s.
func (s scope) with(r *rule) scope {
	switch {
	case r.annotation != nil:
		s.annotations = append(slices.Clip(s.annotations), r)
	case r.path.anywhere:
		s.anywhere = append(slices.Clip(s.anywhere), r)
	}
	return s
}

// object visits an object of a kind.
func (w *walk) object(o map[string]any, of objectKind, s scope) {
	for _, r := range w.rules {
		if r.action == statusOnly || !r.covers(of) {
			continue
		}
		if !r.universal() {
			s = s.with(r)
		}
		if r.annotation == nil && !r.path.anywhere {
			w.follow(r, r.path.segments, o, true)
		}
	}
	w.fields(o, s, true)
	if item, isList := strings.CutSuffix(of.kind, "List"); isList {
		w.incompleteItems(o, objectKind{of.group, item}, s)
	}
}

// incompleteItems visits the items of a list that lack a part of their identity: those of a SecretList have no kind.
func (w *walk) incompleteItems(list map[string]any, of objectKind, s scope) {
	items, _ := list["items"].([]any)
	for i, item := range items {
		o, ok := item.(map[string]any)
		if !ok || isObject(o) {
			continue
		}
		w.push("items", strconv.Itoa(i))
		if own := kindOf(o); own.kind != "" {
			w.object(o, own, s)
		} else {
			w.object(o, of, s)
		}
		w.pop(2)
	}
}

// value visits a value in an object.
func (w *walk) value(v any, s scope) {
	switch v := v.(type) {
	case map[string]any:
		if isObject(v) {
			w.object(v, kindOf(v), s)
		} else {
			w.fields(v, s, false)
		}
	case []any:
		for i, item := range v {
			w.push(strconv.Itoa(i))
			w.value(item, s)
			w.pop(1)
		}
	}
}

// fields visits the fields of a map. The identity of an object is not visited.
func (w *walk) fields(m map[string]any, s scope, object bool) {
	for _, r := range s.anywhere {
		w.follow(r, r.path.segments, m, object)
	}
	if metadata, ok := m["metadata"].(map[string]any); ok {
		w.annotationsOf(metadata, s)
	}
	for name, child := range m {
		if object && isIdentity(name) {
			continue
		}
		for _, r := range w.anywhere.of(name) {
			w.step(r, r.path.segments, m, name, child)
		}
		switch child.(type) {
		case map[string]any, []any:
			w.push(name)
			w.value(child, s)
			w.pop(1)
		}
	}
}

func (w *walk) annotationsOf(metadata map[string]any, s scope) {
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	w.push("metadata", "annotations")
	for _, rules := range [][]*rule{w.annotations, s.annotations} {
		for _, r := range rules {
			for name, value := range annotations {
				if r.selectsAnnotation(name) {
					w.selected(r, name, value, func(v any) { annotations[name] = v })
				}
			}
		}
	}
	w.pop(2)
}

// follow visits the values that the rest of a path selects in a value.
func (w *walk) follow(r *rule, rest []segment, v any, object bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	s := rest[0]
	if s.wild == nil {
		if child, ok := m[s.name]; ok {
			w.step(r, rest, m, s.name, child)
		}
		return
	}
	for name, child := range m {
		if s.selects(name) && (!object || !isIdentity(name)) {
			w.step(r, rest, m, name, child)
		}
	}
}

// step visits the values that the rest of a path selects in a field that matches its first segment.
func (w *walk) step(r *rule, rest []segment, m map[string]any, name string, child any) {
	s, rest := rest[0], rest[1:]
	switch {
	case !s.items && len(rest) == 0:
		w.selected(r, name, child, func(v any) { m[name] = v })
		return
	case !s.items:
		w.push(name)
		w.follow(r, rest, child, false)
		w.pop(1)
		return
	}
	list, _ := child.([]any)
	w.push(name)
	for i, item := range list {
		switch {
		case !s.selectsItem(item):
		case len(rest) == 0:
			w.selected(r, strconv.Itoa(i), item, func(v any) { list[i] = v })
		default:
			w.push(strconv.Itoa(i))
			w.follow(r, rest, item, false)
			w.pop(1)
		}
	}
	w.pop(1)
}

func (w *walk) push(names ...string) { w.place = append(w.place, names...) }

func (w *walk) pop(n int) { w.place = w.place[:len(w.place)-n] }

// selects reports whether the segment matches the name of a field.
func (s segment) selects(field string) bool {
	if s.wild == nil {
		return field == s.name
	}
	return s.wild.match(field)
}

func (s segment) selectsItem(item any) bool {
	if s.itemName == nil {
		return true
	}
	m, _ := item.(map[string]any)
	name, ok := m["name"].(string)
	return ok && s.itemName.match(name)
}

// selected passes a value on to hit.
func (w *walk) selected(r *rule, name string, value any, set func(any)) {
	if isEmpty(value) {
		return
	}
	if r.annotation == nil && r.path.guesses() {
		switch value.(type) {
		case map[string]any, []any, bool:
			return
		}
	}
	w.hit(r, append(w.place, name), value, set)
}

// isObject reports whether a map in an object is an object of Kubernetes, or a reference to one.
func isObject(m map[string]any) bool {
	kind, _ := m["kind"].(string)
	version, _ := m["apiVersion"].(string)
	return kind != "" && (version != "" || hasMetadata(m))
}

func hasMetadata(m map[string]any) bool {
	_, ok := m["metadata"].(map[string]any)
	return ok
}

func kindOf(o map[string]any) objectKind {
	kind, _ := o["kind"].(string)
	version, _ := o["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	return objectKind{group, kind}
}
