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
		s.annotations = withRule(s.annotations, r)
	case r.path.anywhere:
		s.anywhere = withRule(s.anywhere, r)
	}
	return s
}

// withRule adds a rule once: each of many nested objects of a kind adds the rules about that kind.
func withRule(rules []*rule, r *rule) []*rule {
	if slices.Contains(rules, r) {
		return rules
	}
	return append(slices.Clip(rules), r)
}

// object visits an object of a kind.
func (w *walk) object(o map[string]any, of objectKind, s scope) {
	w.fields(o, w.ofKind(o, of, s), true, of)
}

// ofKind visits the fields that rules about a kind name in an object. It returns the scope of all its fields.
func (w *walk) ofKind(o map[string]any, of objectKind, s scope) scope {
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
	return s
}

// items visits the items of a list. Some may lack a part of their identity: those of a SecretList have no kind. Each item is
// visited once, because lists may be nested.
func (w *walk) items(list []any, of objectKind, s scope) {
	for i, item := range list {
		w.push(strconv.Itoa(i))
		if o, ok := item.(map[string]any); ok && !isObject(o) {
			w.incompleteItem(o, of, s)
		} else {
			w.value(item, s)
		}
		w.pop(1)
	}
}

// incompleteItem visits an item of a list that lacks a part of its identity. Its kind is its own one, or else that of the list.
func (w *walk) incompleteItem(o map[string]any, of objectKind, s scope) {
	if own := kindOf(o); own.kind != "" {
		of = own
	}
	w.object(o, of, s)
	for _, r := range s.anywhere {
		w.follow(r, r.path.segments, o, false)
	}
	for _, name := range identityFields {
		if child, ok := o[name]; ok {
			child = w.anywhereAt(o, name, child)
			w.push(name)
			w.value(child, s)
			w.pop(1)
		}
	}
}

// value visits a value in an object.
func (w *walk) value(v any, s scope) {
	switch v := v.(type) {
	case map[string]any:
		if isObject(v) {
			w.object(v, kindOf(v), s)
		} else {
			w.fields(v, s, false, objectKind{})
		}
	case []any:
		for i, item := range v {
			w.push(strconv.Itoa(i))
			w.value(item, s)
			w.pop(1)
		}
	}
}

// fields visits the fields of a map. If it is an object of a kind, its identity is not visited.
func (w *walk) fields(m map[string]any, s scope, object bool, of objectKind) {
	itemKind, isList := strings.CutSuffix(of.kind, "List")
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
		child = w.anywhereAt(m, name, child)
		if !isNested(child) {
			continue
		}
		w.push(name)
		if list, ok := child.([]any); ok && isList && name == "items" {
			w.items(list, objectKind{of.group, itemKind}, s)
		} else {
			w.value(child, s)
		}
		w.pop(1)
	}
}

// anywhereAt visits the values that universal rules select from a field on. It returns the value of the field, which may be
// replaced then.
func (w *walk) anywhereAt(m map[string]any, name string, child any) any {
	rules := w.anywhere.of(name)
	for _, r := range rules {
		w.step(r, r.path.segments, m, name, child)
	}
	if len(rules) == 0 {
		return child
	}
	return m[name]
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
	if !ok {
		name, ok = m["key"].(string)
	}
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

// isObject reports whether a map in an object is an object of Kubernetes, or a reference to one. A template of a Secret may
// have its kind only.
func isObject(m map[string]any) bool {
	kind, _ := m["kind"].(string)
	version, _ := m["apiVersion"].(string)
	return kind == "Secret" || kind != "" && (version != "" || hasMetadata(m))
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
