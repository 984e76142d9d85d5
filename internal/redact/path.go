package redact

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// path selects values in an object.
type path struct {
	// anywhere is true for a path that starts at any field of the object: "**.".
	anywhere bool
	segments []segment
}

// segment selects fields of a map, and items of their lists.
type segment struct {
	name  string   // of the field, if wild is nil
	wild  *pattern // of the names of fields
	items bool     // the items of the list in the field, instead of the field
	// itemName matches the name of an item, or its key if it has no name; nil for all items.
	itemName *pattern
}

// guesses reports whether the last segment is a pattern. A guess selects texts and numbers only: a field of such a name may
// have a reference to a Secret, or a switch.
func (p path) guesses() bool { return p.segments[len(p.segments)-1].wild != nil }

var errPath = errors.New(`give fields separated by dots, such as spec.users[*].password, **.*password or data."tls.key"`)

// parsePath parses a path.
func parsePath(text string) (p path, err error) {
	rest, anywhere := strings.CutPrefix(text, "**.")
	p.anywhere = anywhere
	for {
		var s segment
		if s, rest, err = parseSegment(rest); err != nil {
			return path{}, fmt.Errorf("path %q: %w", text, err)
		}
		p.segments = append(p.segments, s)
		if rest == "" {
			break
		}
		var more bool
		if rest, more = strings.CutPrefix(rest, "."); !more {
			return path{}, fmt.Errorf("path %q: %w", text, errPath)
		}
	}
	if first := p.segments[0]; !anywhere && first.wild == nil && isIdentity(first.name) {
		return path{}, fmt.Errorf("path %q: the identity of an object cannot be redacted; for annotations give annotation", text)
	}
	return p, nil
}

// identityFields have the identity of an object.
var identityFields = []string{"apiVersion", "kind", "metadata"}

func isIdentity(field string) bool { return slices.Contains(identityFields, field) }

// parseSegment parses the first segment of a path.
func parseSegment(text string) (s segment, rest string, err error) {
	name, quoted := "", false
	if after, ok := strings.CutPrefix(text, `"`); ok {
		name, rest, quoted = strings.Cut(after, `"`)
		if !quoted {
			return s, "", errPath
		}
	} else {
		end := strings.IndexAny(text, `.["]`)
		if end < 0 {
			end = len(text)
		}
		name, rest = text[:end], text[end:]
	}
	switch {
	case name == "" || strings.Contains(name, "**"):
		return s, "", errPath
	case !quoted && isPattern(name):
		wild := newPattern(name)
		s.wild = &wild
	default:
		s.name = name
	}
	inside, ok := strings.CutPrefix(rest, "[")
	if !ok {
		return s, rest, nil
	}
	inside, rest, ok = strings.Cut(inside, "]")
	itemName, byName := strings.CutPrefix(inside, "name=")
	switch {
	case ok && inside == "*":
	case ok && byName && itemName != "":
		p := newPattern(itemName)
		s.itemName = &p
	default:
		return s, "", errors.New(`in brackets give * for all items, or name=PATTERN for those with such a name`)
	}
	s.items = true
	return s, rest, nil
}
