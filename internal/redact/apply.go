package redact

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Apply redacts an object in place. It does not write to values that are redacted already.
func (r *Rules) Apply(object map[string]any) { r.orBuiltIn().apply(object) }

// Definition redacts an object in place, as Apply does, for readers outside of the cluster. It leaves the identity of a
// statusOnly object.
func (r *Rules) Definition(object map[string]any) { r.orBuiltIn().definition(object) }

func (r *Rules) definition(object map[string]any) (changed bool) {
	reduced := r.reduce(object, true)
	return r.apply(object) || reduced
}

// kept has the places that keep rules select, as a tree. A keep rule also keeps everything below a place.
type kept struct {
	all    bool
	fields map[string]*kept
}

func (k *kept) add(place []string) {
	for _, name := range place {
		next, ok := k.fields[name]
		if !ok {
			if k.fields == nil {
				k.fields = map[string]*kept{}
			}
			next = &kept{}
			k.fields[name] = next
		}
		k = next
	}
	k.all = true
}

func (k *kept) covers(place []string) bool {
	for _, name := range place {
		next, ok := k.fields[name]
		switch {
		case !ok:
			return false
		case next.all:
			return true
		}
		k = next
	}
	return false
}

func (r *Rules) apply(object map[string]any) (changed bool) {
	_, changed = cut(object, maxDepth+1)
	var places kept
	for _, l := range []layer{r.user, r.builtIn} {
		visit(object, l.keep, func(_ *rule, place []string, _ any, _ func(any)) {
			places.add(place)
		})
		visit(object, l.redact, func(rule *rule, place []string, value any, set func(any)) {
			if rule.always || !places.covers(place) {
				set(r.replacement(rule.action, value))
				changed = true
			}
		})
	}
	return changed
}

// maxDepth bounds the maps and lists that a value is nested in: the cost of a keep rule grows with the depth of its values. No
// object in Kubernetes is nested as deep.
const maxDepth = 200

// cut replaces the maps and lists at a depth, and returns what is left of the value.
func cut(v any, depth int) (left any, changed bool) {
	if depth == 0 && isNested(v) {
		return threeport.Redacted, true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if left, isCut := cut(child, depth-1); isCut {
				v[name], changed = left, true
			}
		}
	case []any:
		for i, child := range v {
			if left, isCut := cut(child, depth-1); isCut {
				v[i], changed = left, true
			}
		}
	}
	return v, changed
}

func isNested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func visit(object map[string]any, rules *ruleSet, hit func(r *rule, place []string, value any, set func(any))) {
	if len(rules.rules) > 0 {
		(&walk{ruleSet: rules, hit: hit}).object(object, kindOf(object), scope{})
	}
}

// Annotations redacts the annotations of an object in place, where nothing else of the object is known.
func (r *Rules) Annotations(group, kind string, annotations map[string]string) {
	if len(annotations) == 0 {
		return
	}
	decoded := make(map[string]any, len(annotations))
	for name, value := range annotations {
		decoded[name] = value
	}
	version := "v1"
	if group != "" {
		version = group + "/v1"
	}
	r.Apply(map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"annotations": decoded}})
	for name, value := range decoded {
		if text, ok := value.(string); ok && text != annotations[name] {
			annotations[name] = text
		}
	}
}

// identity is the metadata of a statusOnly object that may leave the cluster.
var identity = map[string]bool{
	"name": true, "namespace": true, "uid": true, "resourceVersion": true, "generation": true,
	"creationTimestamp": true, "deletionTimestamp": true,
}

// reduce leaves the identity of the statusOnly objects in a value. The names of the other fields stay, so that a reader sees
// that the fields are redacted.
func (r *Rules) reduce(v any, object bool) (changed bool) {
	if !r.hasStatusOnly() {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		if of := kindOf(v); (object || isObject(v) && hasMetadata(v)) && r.IsStatusOnly(of.group, of.kind) {
			return reduceObject(v)
		}
		for _, child := range v {
			changed = r.reduce(child, false) || changed
		}
	case []any:
		for _, child := range v {
			changed = r.reduce(child, false) || changed
		}
	}
	return changed
}

func (r *Rules) hasStatusOnly() bool {
	for _, rule := range r.user.redact.rules {
		if rule.action == statusOnly {
			return true
		}
	}
	return false
}

// IsStatusOnly reports whether no definition of objects of a kind leaves the cluster.
func (r *Rules) IsStatusOnly(group, kind string) bool {
	r, of := r.orBuiltIn(), objectKind{group, kind}
	for _, rule := range r.user.redact.rules {
		if rule.action == statusOnly && rule.covers(of) {
			return true
		}
	}
	return false
}

func reduceObject(o map[string]any) (changed bool) {
	metadata, _ := o["metadata"].(map[string]any)
	for name, value := range metadata {
		if !identity[name] && !isEmpty(value) {
			metadata[name], changed = threeport.Redacted, true
		}
	}
	for name, value := range o {
		if !isIdentity(name) && !isEmpty(value) {
			o[name], changed = threeport.Redacted, true
		}
	}
	return changed
}

// maxDocument bounds the documents that are decoded, in bytes. etcd limits objects to 1.5 MiB. Decoding takes up to 50 bytes
// of memory per byte.
const maxDocument = 2 << 20

// Document redacts a definition in JSON, as Definition does. A definition that cannot be redacted, because it is no object or
// too large, is replaced.
func (r *Rules) Document(text string) string {
	const replaced = `"` + threeport.Redacted + `"`
	if len(text) > maxDocument {
		return replaced
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return replaced
	}
	switch changed, ok := r.orBuiltIn().document(value); {
	case !ok:
		return replaced
	case !changed:
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return replaced
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// document redacts an object, or a list of objects. It returns false for other values: a text may be a manifest.
func (r *Rules) document(value any) (changed, ok bool) {
	switch v := value.(type) {
	case nil:
		return false, true
	case map[string]any:
		return r.definition(v), true
	case []any:
		for _, item := range v {
			itemChanged, isObject := r.document(item)
			if !isObject {
				return false, false
			}
			changed = changed || itemChanged
		}
		return changed, true
	}
	return false, false
}
