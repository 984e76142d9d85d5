package store

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// quickNormal is a document that is normal but for the characters that encoding/json escapes for HTML, which is how an
// agent sends it: it is read once, and not built up as a value, which takes ten times as long. If it is not sure, it says
// so. What it returns is what slowNormal does.
func quickNormal(raw json.RawMessage) (doc string, ok bool) {
	n := normaliser{raw: raw}
	if !n.value(0) || n.at != len(raw) {
		return "", false
	}
	if n.done == 0 {
		return string(raw), true
	}
	return string(append(n.out, raw[n.done:]...)), true
}

// normaliser reads a document.
type normaliser struct {
	raw []byte
	at  int
	// out has what raw[:done] is normalised; nothing is copied as long as both are equal.
	out  []byte
	done int
}

// maxQuickDepth is how deep a document may be nested to be read by recursion.
const maxQuickDepth = 200

// next tells whether the next byte is this one, and passes over it if so.
func (n *normaliser) next(b byte) bool {
	if n.at < len(n.raw) && n.raw[n.at] == b {
		n.at++
		return true
	}
	return false
}

func (n *normaliser) value(depth int) bool {
	if n.at >= len(n.raw) || depth > maxQuickDepth {
		return false
	}
	switch n.raw[n.at] {
	case '{':
		n.at++
		return n.object(depth + 1)
	case '[':
		n.at++
		return n.list(depth + 1)
	case '"':
		n.at++
		return n.text()
	case 't':
		return n.word("true")
	case 'f':
		return n.word("false")
	case 'n':
		return n.word("null")
	default:
		return n.number()
	}
}

func (n *normaliser) word(word string) bool {
	if !bytes.HasPrefix(n.raw[n.at:], []byte(word)) {
		return false
	}
	n.at += len(word)
	return true
}

// object has its keys in order, each once and without any escape.
func (n *normaliser) object(depth int) bool {
	if n.next('}') {
		return true
	}
	var before []byte
	for first := true; ; first = false {
		from := n.at + 1
		if !n.next('"') || !n.text() {
			return false
		}
		key := n.raw[from : n.at-1]
		if bytes.IndexByte(key, '\\') >= 0 || !first && bytes.Compare(before, key) >= 0 {
			return false
		}
		before = key
		if !n.next(':') || !n.value(depth) {
			return false
		}
		if n.next('}') {
			return true
		}
		if !n.next(',') {
			return false
		}
	}
}

func (n *normaliser) list(depth int) bool {
	if n.next(']') {
		return true
	}
	for {
		if !n.value(depth) {
			return false
		}
		if n.next(']') {
			return true
		}
		if !n.next(',') {
			return false
		}
	}
}

// text passes over a string whose quote was passed, and over the quote at its end.
func (n *normaliser) text() bool {
	for n.at < len(n.raw) {
		switch b := n.raw[n.at]; {
		case b == '"':
			n.at++
			return true
		case b == '\\':
			if !n.escape() {
				return false
			}
		case b < ' ':
			return false
		case b < utf8.RuneSelf:
			n.at++
		default:
			r, size := utf8.DecodeRune(n.raw[n.at:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' { // which encoding/json replaces, or escapes
				return false
			}
			n.at += size
		}
	}
	return false
}

// escape passes over an escape that encoding/json writes as well, or replaces one that it writes for HTML only.
func (n *normaliser) escape() bool {
	rest := n.raw[n.at:]
	if len(rest) < 2 {
		return false
	}
	if bytes.IndexByte([]byte(`"\bfnrt`), rest[1]) >= 0 {
		n.at += 2
		return true
	}
	for _, html := range []struct {
		escape    string
		character byte
	}{{`\u003c`, '<'}, {`\u003e`, '>'}, {`\u0026`, '&'}} {
		if bytes.HasPrefix(rest, []byte(html.escape)) {
			n.out = append(append(n.out, n.raw[n.done:n.at]...), html.character)
			n.at += len(html.escape)
			n.done = n.at
			return true
		}
	}
	return false
}

// number follows the grammar of RFC 8259, section 6. Its digits stay as they are.
func (n *normaliser) number() bool {
	n.next('-')
	if !n.next('0') && !n.digits() {
		return false
	}
	if n.next('.') && !n.digits() {
		return false
	}
	if n.next('e') || n.next('E') {
		if !n.next('+') {
			n.next('-')
		}
		return n.digits()
	}
	return true
}

// digits passes over one or more.
func (n *normaliser) digits() bool {
	from := n.at
	for n.at < len(n.raw) && '0' <= n.raw[n.at] && n.raw[n.at] <= '9' {
		n.at++
	}
	return n.at > from
}
