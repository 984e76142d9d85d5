package luascript

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	maxPattern  = 1024
	maxCaptures = 32
	// matchesPerStep is the number of compared characters that count as a step.
	matchesPerStep = 8

	openCapture     = -1
	positionCapture = -2
)

// matcher matches a pattern of Lua. The interpreter's own matcher has no bound, and some patterns backtrack without end.
//
// Source: Lua 5.1 Reference Manual, 5.4.1, "Patterns".
type matcher struct {
	l            *lua.LState
	src, pattern string
	anchored     bool
	compared     int
	captures     []struct{ start, length int }
}

func newMatcher(l *lua.LState, src, pattern string) *matcher {
	if len(pattern) > maxPattern {
		l.RaiseError("a pattern exceeds %d bytes", maxPattern)
	}
	spend(l, 1, 256)
	m := &matcher{l: l, src: src, pattern: pattern}
	if strings.HasPrefix(pattern, "^") {
		m.pattern, m.anchored = pattern[1:], true
	}
	return m
}

// find returns the first match from a position; -1 if there is none.
func (m *matcher) find(from int) (begin, end int) {
	for at := from; at <= len(m.src); at++ {
		if end := m.matchAt(at); end >= 0 {
			return at, end
		}
		if m.anchored {
			break
		}
	}
	return -1, -1
}

// matchAt returns the end of a match that begins at a position; -1 if there is none.
func (m *matcher) matchAt(at int) int {
	m.captures = m.captures[:0]
	return m.match(at, 0)
}

func (m *matcher) fail(text string) { m.l.RaiseError("malformed pattern (%s)", text) }

// match matches the pattern from p at a position of the source, and returns the end.
func (m *matcher) match(s, p int) int {
	for p < len(m.pattern) {
		m.count()
		switch c := m.pattern[p]; {
		case c == '(':
			return m.open(s, p)
		case c == ')':
			return m.close(s, p)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.src) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern) && strings.IndexByte("bf0123456789", m.pattern[p+1]) >= 0:
			if s, p = m.special(s, p+1); s < 0 {
				return -1
			}
			continue
		}
		next := m.itemEnd(p)
		if next < len(m.pattern) && strings.IndexByte("?*+-", m.pattern[next]) >= 0 {
			return m.repeat(s, p, next)
		}
		if !m.single(s, p, next) {
			return -1
		}
		s, p = s+1, next
	}
	return s
}

// repeat matches an item with one of the suffixes ?, *, + and -.
func (m *matcher) repeat(s, p, suffix int) int {
	least, most := 0, len(m.src)-s
	switch m.pattern[suffix] {
	case '?':
		most = min(most, 1)
	case '+':
		least = 1
	case '-':
		for {
			if end := m.match(s, suffix+1); end >= 0 {
				return end
			}
			if !m.single(s, p, suffix) {
				return -1
			}
			s++
		}
	}
	n := 0
	for n < most && m.single(s+n, p, suffix) {
		n++
	}
	for ; n >= least; n-- {
		if end := m.match(s+n, suffix+1); end >= 0 {
			return end
		}
	}
	return -1
}

func (m *matcher) open(s, p int) int {
	if len(m.captures) == maxCaptures {
		m.fail("too many captures")
	}
	length := openCapture
	if p++; p < len(m.pattern) && m.pattern[p] == ')' {
		length, p = positionCapture, p+1
	}
	n := len(m.captures)
	m.captures = append(m.captures, struct{ start, length int }{s, length})
	end := m.match(s, p)
	if end < 0 {
		m.captures = m.captures[:n]
	}
	return end
}

func (m *matcher) close(s, p int) int {
	n := len(m.captures) - 1
	for n >= 0 && m.captures[n].length != openCapture {
		n--
	}
	if n < 0 {
		m.fail("a parenthesis is not open")
	}
	m.captures[n].length = s - m.captures[n].start
	end := m.match(s, p+1)
	if end < 0 {
		m.captures[n].length = openCapture
	}
	return end
}

// special matches %b, %f and a back reference, whose letter is at p. It returns the next positions; -1 if there is no match.
func (m *matcher) special(s, p int) (nextSource, nextPattern int) {
	switch c := m.pattern[p]; c {
	case 'b':
		if p+2 >= len(m.pattern) {
			m.fail("%b lacks its two characters")
		}
		return m.balanced(s, m.pattern[p+1], m.pattern[p+2]), p + 3
	case 'f':
		if p+1 >= len(m.pattern) || m.pattern[p+1] != '[' {
			m.fail("%f lacks its set")
		}
		end := m.itemEnd(p + 1)
		before, at := byte(0), byte(0)
		if s > 0 {
			before = m.src[s-1]
		}
		if s < len(m.src) {
			at = m.src[s]
		}
		if m.inSet(before, p+1, end) || !m.inSet(at, p+1, end) {
			return -1, 0
		}
		return s, end
	default:
		n := int(c) - '1'
		if n < 0 || n >= len(m.captures) || m.captures[n].length < 0 {
			m.fail("invalid capture index")
		}
		text := m.src[m.captures[n].start:][:m.captures[n].length]
		spend(m.l, len(text)/64, 0)
		if !strings.HasPrefix(m.src[s:], text) {
			return -1, 0
		}
		return s + len(text), p + 1
	}
}

func (m *matcher) balanced(s int, open, closing byte) int {
	if s >= len(m.src) || m.src[s] != open {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.count()
		switch m.src[i] {
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

// itemEnd returns the end of the character, class or set at p.
func (m *matcher) itemEnd(p int) int {
	switch m.pattern[p] {
	case '%':
		if p+1 >= len(m.pattern) {
			m.fail("it ends with %")
		}
		return p + 2
	case '[':
		i := p + 1
		if i < len(m.pattern) && m.pattern[i] == '^' {
			i++
		}
		for first := true; i < len(m.pattern); first = false {
			switch c := m.pattern[i]; {
			case c == ']' && !first:
				return i + 1
			case c == '%':
				i++
			}
			i++
		}
		m.fail("missing ]")
	}
	return p + 1
}

// count counts a comparison.
func (m *matcher) count() {
	if m.compared++; m.compared%matchesPerStep == 0 {
		spend(m.l, 1, 0)
	}
}

// single matches one character against the item of the pattern from p to end.
func (m *matcher) single(s, p, end int) bool {
	m.count()
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end)
	}
	return m.pattern[p] == c
}

// inSet reports whether a character is in the set of the pattern from p, its bracket, to end.
func (m *matcher) inSet(c byte, p, end int) bool {
	set := m.pattern[p+1 : end-1]
	found := true
	if strings.HasPrefix(set, "^") {
		set, found = set[1:], false
	}
	for i := 0; i < len(set); i++ {
		m.count()
		switch {
		case set[i] == '%' && i+1 < len(set):
			i++
			if inClass(c, set[i]) {
				return found
			}
		case i+2 < len(set) && set[i+1] == '-':
			if set[i] <= c && c <= set[i+2] {
				return found
			}
			i += 2
		case set[i] == c:
			return found
		}
	}
	return !found
}

func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool { return isLower(c | 0x20) }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// classes has the character classes by their lower-case letter.
var classes = map[byte]func(byte) bool{
	'a': isLetter,
	'c': func(c byte) bool { return c < ' ' || c == 0x7f },
	'd': isDigit,
	'l': isLower,
	'p': func(c byte) bool { return ' ' < c && c < 0x7f && !isLetter(c) && !isDigit(c) },
	's': func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	'u': func(c byte) bool { return 'A' <= c && c <= 'Z' },
	'w': func(c byte) bool { return isLetter(c) || isDigit(c) },
	'x': func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
	'z': func(c byte) bool { return c == 0 },
}

// inClass reports whether a character is in a class such as %d; with a capital letter, whether it is not.
func inClass(c, class byte) bool {
	in, ok := classes[class|0x20]
	if !ok || !isLetter(class) {
		return c == class
	}
	return in(c) == isLower(class)
}

// capture returns a capture; the first is the whole match if there are none.
func (m *matcher) capture(n, begin, end int) lua.LValue {
	if n == 0 && len(m.captures) == 0 {
		return lua.LString(m.src[begin:end])
	}
	if n >= len(m.captures) || m.captures[n].length == openCapture {
		m.l.RaiseError("invalid capture")
	}
	c := m.captures[n]
	if c.length == positionCapture {
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.src[c.start:][:c.length])
}

// push returns the captures to the script; if there are none and whole is set, the match.
func (m *matcher) push(begin, end int, whole bool) int {
	n := len(m.captures)
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.l.Push(m.capture(i, begin, end))
	}
	return n
}
