package canonicaljson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// canonicalizer scans a document and writes the differences to its canonical form. A canonical document, as agents send
// them, is scanned once and copied once. If an object has unsorted keys, there are three scans: to count such objects,
// to sort their keys, and to write them.
type canonicalizer struct {
	raw []byte
	at  int

	// out is the canonical form of raw[:done] while writing is set. Nothing is copied before the first difference.
	writing bool
	out     strings.Builder
	done    int

	changed bool // the document is not canonical
	nul     bool // a string has a NUL
	longer  int  // upper bound of the bytes that the canonical form is longer

	// members counts the members of all objects, and mixed the objects with unsorted keys.
	members, mixed int
	order          *keyOrder // nil during the first scan
}

// maxDepth is the maximal nesting depth, as in encoding/json.
const maxDepth = 10_000

// again scans a document, which the first scan found valid, in order to write it.
func (n *canonicalizer) again() *canonicalizer {
	var sorted *keyOrder
	if n.mixed > 0 {
		sorted = newKeyOrder(n.raw, n.members, n.mixed)
		(&canonicalizer{raw: n.raw, order: sorted}).value(0)
		sorted.finish()
	}
	second := &canonicalizer{raw: n.raw, order: sorted, writing: true, longer: n.longer}
	second.value(0)
	return second
}

// text returns the canonical form after the scan.
func (n *canonicalizer) text() string {
	if !n.changed {
		return string(n.raw[:n.at])
	}
	n.flush()
	doc := n.out.String()
	if len(doc) < len(n.raw)/2 {
		return strings.Clone(doc) // without unused capacity
	}
	return doc
}

// flush writes the bytes that were scanned and stay unchanged.
func (n *canonicalizer) flush() { n.replace(0, "") }

// replace writes by instead of the next bytes.
func (n *canonicalizer) replace(length int, by string) {
	n.changed = true
	n.longer += max(0, len(by)-length)
	if n.writing {
		if n.out.Cap() == 0 {
			n.out.Grow(len(n.raw) + n.longer)
		}
		n.out.Write(n.raw[n.done:n.at])
		n.out.WriteString(by)
	}
	n.at += length
	n.done = n.at
}

// next consumes the next byte if it equals b, and reports whether it did.
func (n *canonicalizer) next(b byte) bool {
	if n.at < len(n.raw) && n.raw[n.at] == b {
		n.at++
		return true
	}
	return false
}

// space removes white space.
func (n *canonicalizer) space() {
	if n.at < len(n.raw) && n.raw[n.at] <= ' ' {
		n.drop()
	}
}

func (n *canonicalizer) drop() {
	rest := n.raw[n.at:]
	n.replace(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n")), "")
}

func (n *canonicalizer) value(depth int) bool {
	n.space()
	if n.at >= len(n.raw) {
		return false
	}
	switch n.raw[n.at] {
	case '{':
		n.at++
		return depth < maxDepth && n.object(depth+1)
	case '[':
		n.at++
		return depth < maxDepth && n.list(depth+1)
	case '"':
		n.at++
		return n.characters()
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

func (n *canonicalizer) word(word string) bool {
	if !bytes.HasPrefix(n.raw[n.at:], []byte(word)) {
		return false
	}
	n.at += len(word)
	return true
}

// object scans an object after its opening brace.
func (n *canonicalizer) object(depth int) bool {
	open := n.at
	if n.order != nil && n.writing {
		if keys := n.order.of(open); keys != nil {
			return n.reorder(keys, depth)
		}
	}
	n.space()
	if n.next('}') {
		return true
	}
	sorted, count := true, 0
	for before := -1; ; count++ {
		n.space()
		key := n.at
		if !n.member(depth) {
			return false
		}
		sorted = sorted && (before < 0 || compareKeys(n.raw, before, key) < 0)
		before = key
		if n.order != nil && !n.writing {
			n.order.push(key)
		}
		n.space()
		if n.next('}') {
			break
		}
		if !n.next(',') {
			return false
		}
	}
	return n.closed(open, count+1, sorted)
}

// member scans a key and its value.
func (n *canonicalizer) member(depth int) bool {
	if !n.next('"') || !n.characters() {
		return false
	}
	n.space()
	return n.next(':') && n.value(depth)
}

// closed records an object that was scanned.
func (n *canonicalizer) closed(open, members int, sorted bool) bool {
	switch {
	case n.order == nil:
		n.members += members
		if !sorted {
			n.mixed++
			n.writing = false
			n.out.Reset()
		}
	case !n.writing:
		n.order.closeObject(open, members, sorted)
	}
	return true
}

// reorder writes the members of an object, after its opening brace, in the order of keys.
func (n *canonicalizer) reorder(keys []int32, depth int) bool {
	n.flush()
	end := 0
	for i, key := range keys {
		if i > 0 {
			n.replace(0, ",")
		}
		n.at, n.done = int(key), int(key)
		if !n.member(depth) {
			return false
		}
		n.flush()
		end = max(end, n.at)
	}
	n.at, n.done = end, end
	n.space()
	return n.next('}')
}

// list scans an array after its opening bracket.
func (n *canonicalizer) list(depth int) bool {
	n.space()
	if n.next(']') {
		return true
	}
	for {
		if !n.value(depth) {
			return false
		}
		n.space()
		if n.next(']') {
			return true
		}
		if !n.next(',') {
			return false
		}
	}
}

// plain are the ASCII characters that are never escaped.
var plain = func() (is [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		is[b] = b != '"' && b != '\\'
	}
	return is
}()

// characters scans a string after its opening quote, up to and including its closing quote.
func (n *canonicalizer) characters() bool {
	for {
		for n.at < len(n.raw) && plain[n.raw[n.at]] {
			n.at++
		}
		if n.at == len(n.raw) {
			return false
		}
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
		default:
			n.wide()
		}
	}
}

// wide scans a character that is not ASCII, or an invalid byte.
func (n *canonicalizer) wide() {
	r, size := utf8.DecodeRune(n.raw[n.at:])
	if size == 1 || r == '\u2028' || r == '\u2029' {
		n.character(r, size)
		return
	}
	n.at += size
}

// character scans a character that is written as encoding/json encodes it.
func (n *canonicalizer) character(r rune, length int) {
	var room [maxCharacter]byte
	if want := appendCharacter(room[:0], r); bytes.HasPrefix(n.raw[n.at:], want) {
		n.at += length
	} else {
		n.replace(length, string(want))
	}
}

func (n *canonicalizer) escape() bool {
	rest := n.raw[n.at:]
	if len(rest) > 1 && bytes.IndexByte([]byte(`"\bfnrt`), rest[1]) >= 0 { // these escapes stay unchanged
		n.at += 2
		return true
	}
	r, length := unescape(rest)
	if length == 0 {
		return false
	}
	if r == 0 {
		n.nul = true
	}
	n.character(r, length)
	return true
}

// number scans a number by the grammar of RFC 8259, section 6. Its digits stay unchanged.
func (n *canonicalizer) number() bool {
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

// digits scans one or more digits.
func (n *canonicalizer) digits() bool {
	from := n.at
	for n.at < len(n.raw) && '0' <= n.raw[n.at] && n.raw[n.at] <= '9' {
		n.at++
	}
	return n.at > from
}
