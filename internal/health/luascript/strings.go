package luascript

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

var stringFunctions = functions{
	"byte": stringByte, "char": stringChar, "find": stringFind, "format": stringFormat, "gmatch": stringGmatch, "gsub": stringGsub,
	"len": length, "lower": mapped(strings.ToLower), "match": stringMatch, "rep": stringRep, "reverse": mapped(reverse),
	"sub": stringSub, "upper": mapped(strings.ToUpper),
}

func mapped(f func(string) string) lua.LGFunction {
	return func(l *lua.LState) int {
		s := l.CheckString(1)
		spend(l, 1+len(s)/64, 3*len(s))
		l.Push(lua.LString(f(s)))
		return 1
	}
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// bounds returns the part of a string from and to positions from 1; negative ones count from the end.
func bounds(size, from, to int) (start, end int) {
	if from < 0 {
		from = max(size+from+1, 1)
	}
	if to < 0 {
		to += size + 1
	}
	start, end = max(from-1, 0), min(to, size)
	if start >= end {
		return 0, 0
	}
	return start, end
}

func stringSub(l *lua.LState) int {
	s := l.CheckString(1)
	start, end := bounds(len(s), l.CheckInt(2), l.OptInt(3, -1))
	l.Push(lua.LString(s[start:end]))
	return 1
}

func stringByte(l *lua.LState) int {
	s := l.CheckString(1)
	from := l.OptInt(2, 1)
	start, end := bounds(len(s), from, l.OptInt(3, from))
	if end-start > maxRegistry/2 {
		l.RaiseError("string slice too long")
	}
	spend(l, end-start, 0)
	for i := start; i < end; i++ {
		l.Push(lua.LNumber(s[i]))
	}
	return end - start
}

func stringChar(l *lua.LState) int {
	b := make([]byte, l.GetTop())
	for i := range b {
		b[i] = byte(l.CheckInt(i + 1)) //nolint:gosec // Lua's bytes
	}
	reserve(l, len(b))
	l.Push(lua.LString(b))
	return 1
}

func stringRep(l *lua.LState) int {
	s, n := l.CheckString(1), max(l.CheckInt(2), 0)
	if len(s) == 0 {
		n = 0
	}
	if n > maxString {
		l.RaiseError("a string exceeds %d bytes", maxString)
	}
	reserve(l, n*len(s))
	l.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

// verb matches a conversion of string.format. Width and precision have two digits at most, as in Lua.
var verb = regexp.MustCompile(`%([-+ #0]*\d{0,2}(?:\.\d{0,2})?)([cdiouxXeEfgGqs%])`)

func stringFormat(l *lua.LState) int {
	format := l.CheckString(1)
	next := 1
	out := buffer{l: l}
	for {
		at := verb.FindStringSubmatchIndex(format)
		if at == nil || strings.ContainsRune(format[:at[0]], '%') {
			if strings.ContainsRune(format, '%') {
				l.RaiseError("invalid option in the format of string.format")
			}
			break
		}
		out.add(format[:at[0]])
		flags, kind := format[at[2]:at[3]], format[at[4]]
		format = format[at[1]:]
		if kind == '%' {
			out.add("%")
			continue
		}
		next++
		arg := l.CheckAny(next)
		var text string
		switch kind {
		case 'c':
			text = string([]byte{byte(l.CheckInt(next))}) //nolint:gosec // Lua's bytes
		case 'd', 'i', 'u':
			text = fmt.Sprintf("%"+flags+"d", int64(l.CheckNumber(next)))
		case 'o', 'x', 'X':
			text = fmt.Sprintf("%"+flags+string(kind), int64(l.CheckNumber(next)))
		case 'e', 'E', 'f', 'g', 'G':
			text = fmt.Sprintf("%"+flags+string(kind), float64(l.CheckNumber(next)))
		default:
			value := l.ToStringMeta(arg).String()
			spend(l, 1, 8*len(value)) // quotes
			text = fmt.Sprintf("%"+flags+string(kind), value)
		}
		out.add(text)
	}
	out.add(format)
	return out.push()
}

// stringFind and stringMatch search a pattern.
func stringFind(l *lua.LState) int  { return search(l, true) }
func stringMatch(l *lua.LState) int { return search(l, false) }

func search(l *lua.LState, positions bool) int {
	s, pattern := l.CheckString(1), l.CheckString(2)
	from := l.OptInt(3, 1)
	if from < 0 {
		from += len(s) + 1
	}
	start := max(from-1, 0)
	if start > len(s) {
		l.Push(lua.LNil)
		return 1
	}
	if positions && (lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		spend(l, 1+len(s)/64, 0)
		at := strings.Index(s[start:], pattern)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(start + at + 1))
		l.Push(lua.LNumber(start + at + len(pattern)))
		return 2
	}
	m := newMatcher(l, s, pattern)
	begin, end := m.find(start)
	switch {
	case begin < 0:
		l.Push(lua.LNil)
		return 1
	case !positions:
		return m.push(begin, end, true)
	}
	l.Push(lua.LNumber(begin + 1))
	l.Push(lua.LNumber(end))
	return 2 + m.push(begin, end, false)
}

func stringGmatch(l *lua.LState) int {
	s, pattern := l.CheckString(1), l.CheckString(2)
	start := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		m := newMatcher(l, s, pattern)
		if start > len(s) {
			return 0
		}
		begin, end := m.find(start)
		if begin < 0 {
			start = len(s) + 1
			return 0
		}
		if start = end; end == begin {
			start++
		}
		return m.push(begin, end, true)
	}))
	return 1
}

func stringGsub(l *lua.LState) int {
	s, pattern := l.CheckString(1), l.CheckString(2)
	l.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	limit := l.OptInt(4, len(s)+1)
	m := newMatcher(l, s, pattern)
	out := buffer{l: l}
	n, at := 0, 0
	for n < limit {
		end := m.matchAt(at)
		if end >= 0 {
			n++
			out.add(m.replacement(at, end))
		}
		switch {
		case end > at:
			at = end
		case at < len(s):
			out.add(s[at : at+1])
			at++
		default:
			at++
		}
		if at > len(s) || m.anchored {
			break
		}
	}
	out.add(s[min(at, len(s)):])
	out.push()
	l.Push(lua.LNumber(n))
	return 2
}

// replacement returns the text by which gsub replaces a match.
func (m *matcher) replacement(begin, end int) string {
	l := m.l
	whole := m.src[begin:end]
	var v lua.LValue
	switch by := l.Get(3).(type) {
	case *lua.LTable:
		v = l.GetTable(by, m.capture(0, begin, end))
	case *lua.LFunction:
		l.Push(by)
		l.Call(m.push(begin, end, true), 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		return m.expand(by.String(), begin, end)
	}
	switch {
	case lua.LVIsFalse(v):
		return whole
	case !lua.LVCanConvToString(v):
		l.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	return v.String()
}

// expand replaces %0 to %9 in the replacement of gsub.
func (m *matcher) expand(text string, begin, end int) string {
	out := buffer{l: m.l}
	for i := 0; i < len(text); i++ {
		part := text[i : i+1]
		if text[i] == '%' && i+1 < len(text) {
			i++
			switch c := text[i]; {
			case c == '0':
				part = m.src[begin:end]
			case c >= '1' && c <= '9':
				part = m.capture(int(c-'1'), begin, end).String()
			default:
				part = text[i : i+1]
			}
		}
		out.add(part)
	}
	return string(out.text)
}
