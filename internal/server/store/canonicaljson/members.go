package canonicaljson

import (
	"iter"
	"strings"
)

// Members returns the keys and values of an object, both as they are written in its canonical form. It returns none for another
// value, and copies nothing.
func Members(object string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		if !strings.HasPrefix(object, "{") {
			return
		}
		for rest := object[1:]; strings.HasPrefix(rest, `"`); {
			key := rest[:valueLength(rest)]
			rest = rest[len(key)+len(":"):]
			value := rest[:valueLength(rest)]
			rest = rest[len(value)+len(","):] // or the end of the object
			if !yield(key, value) {
				return
			}
		}
	}
}

// valueLength returns the length of the value at the beginning of a canonical text. A separator or the end of the surrounding
// object follows it.
func valueLength(text string) int {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++ // the escaped character
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case depth > 0:
			if c == '}' || c == ']' {
				depth--
			}
		case c == ':' || c == ',' || c == '}':
			return i
		}
	}
	return len(text)
}
