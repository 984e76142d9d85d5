package luascript

import (
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

type functions = map[string]lua.LGFunction

// builtin returns the functions of the interpreter that neither allocate nor depend on the process.
var builtin = sync.OnceValues(func() (base, math functions) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	lua.OpenBase(l)
	lua.OpenMath(l)
	pick := func(from lua.LValue, names string) functions {
		out := functions{}
		for name := range strings.FieldsSeq(names) {
			out[name] = guard(l.GetField(from, name).(*lua.LFunction).GFunction) //nolint:forcetypeassert // the names are right
		}
		return out
	}
	return pick(l.G.Global, "getmetatable next rawequal rawget rawset setmetatable tostring type tonumber assert error"),
		pick(l.GetGlobal("math"), "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp ldexp log log10 max min mod modf pow "+
			"rad sin sinh sqrt tan tanh")
})

// guard counts the strings that a function gets. It may copy them into its result or its error.
func guard(f lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		for i := range l.GetTop() {
			if s, ok := l.Get(i + 1).(lua.LString); ok {
				spend(l, 1+len(s)/64, len(s))
			}
		}
		return f(l)
	}
}

var baseFunctions = functions{
	"ipairs": ipairs, "pairs": pairs, "pcall": pcall, "print": func(*lua.LState) int { return 0 }, "select": selectValues, "unpack": unpack,
}

var tableFunctions = functions{
	"concat": tableConcat, "getn": length, "insert": tableInsert, "maxn": length, "remove": tableRemove, "sort": tableSort,
}

var osFunctions = functions{
	"clock": func(l *lua.LState) int { l.Push(lua.LNumber(0)); return 1 },
	"date":  osDate,
	"time":  osTime,
}

// openLibraries defines the globals of a script.
func openLibraries(l *lua.LState) {
	base, mathematics := builtin()
	for _, some := range []functions{base, baseFunctions} {
		for name, f := range some {
			l.SetGlobal(name, l.NewFunction(f))
		}
	}
	l.SetGlobal("_G", l.G.Global)
	l.SetGlobal("_VERSION", lua.LString("Lua 5.1"))
	for name, some := range map[string]functions{"math": mathematics, "os": osFunctions, "string": stringFunctions, "table": tableFunctions} {
		t := l.NewTable()
		for name, f := range some {
			t.RawSetString(name, l.NewFunction(f))
		}
		l.SetGlobal(name, t)
	}
	l.SetField(l.GetGlobal("math"), "pi", lua.LNumber(math.Pi))
	l.SetField(l.GetGlobal("math"), "huge", lua.LNumber(math.Inf(1)))
	meta := l.NewTable()
	meta.RawSetString("__index", l.GetGlobal("string"))
	l.SetMetatable(lua.LString(""), meta) // for all strings of this state
}

// newTable counts a table that a constructor creates.
func newTable(l *lua.LState) int {
	t := l.CheckTable(1)
	entries := 0
	t.ForEach(func(lua.LValue, lua.LValue) { entries++ })
	spend(l, entries, tableBytes+entries*entryBytes)
	l.Push(t)
	return 1
}

// concat is the operator .. for two or more operands.
func concat(l *lua.LState) int {
	parts := make([]string, l.GetTop())
	total := 0
	for i := range parts {
		v := l.Get(i + 1)
		if !lua.LVCanConvToString(v) {
			l.RaiseError("attempt to concatenate a %s value", v.Type())
		}
		parts[i] = v.String()
		total += len(parts[i])
	}
	reserve(l, total)
	l.Push(lua.LString(strings.Join(parts, "")))
	return 1
}

// length is the operator #.
func length(l *lua.LState) int {
	switch v := l.CheckAny(1).(type) {
	case lua.LString:
		l.Push(lua.LNumber(len(v)))
	case *lua.LTable:
		l.Push(lua.LNumber(border(v)))
	default:
		l.RaiseError("attempt to get length of a %s value", v.Type())
	}
	return 1
}

func entry(t *lua.LTable, i int) lua.LValue { return t.RawGetH(lua.LNumber(i)) }

// border returns the length of a list by bisection, as Lua does for lists that are not an array.
func border(t *lua.LTable) int {
	high := 1
	for entry(t, high) != lua.LNil {
		high *= 2
	}
	return high/2 + sort.Search(high-high/2, func(i int) bool { return entry(t, high/2+i+1) == lua.LNil })
}

func ipairs(l *lua.LState) int {
	t := l.CheckTable(1)
	l.Push(l.NewFunction(func(l *lua.LState) int {
		i := l.CheckInt(2) + 1
		v := entry(t, i)
		if v == lua.LNil {
			return 0
		}
		l.Push(lua.LNumber(i))
		l.Push(v)
		return 2
	}))
	l.Push(t)
	l.Push(lua.LNumber(0))
	return 3
}

func pairs(l *lua.LState) int {
	t := l.CheckTable(1)
	l.Push(l.NewFunction(func(l *lua.LState) int {
		key, v := l.CheckTable(1).Next(l.Get(2))
		l.Push(key)
		l.Push(v)
		return 2
	}))
	l.Push(t)
	l.Push(lua.LNil)
	return 3
}

// pcall catches the errors of a function. The next instruction after the error of a limit fails again.
func pcall(l *lua.LState) int {
	l.CheckAny(1)
	spend(l, 100, pcallBytes)
	if err := l.PCall(l.GetTop()-1, lua.MultRet, nil); err != nil {
		l.SetTop(0)
		l.Push(lua.LFalse)
		if raised, ok := err.(*lua.ApiError); ok { //nolint:errorlint // PCall does not wrap
			l.Push(raised.Object)
		} else {
			l.Push(lua.LString("error"))
		}
		return 2
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

func selectValues(l *lua.LState) int {
	n := l.GetTop() - 1
	if s, ok := l.Get(1).(lua.LString); ok && s == "#" {
		l.Push(lua.LNumber(n))
		return 1
	}
	i := l.CheckInt(1)
	if i < 0 {
		i += n + 1
	}
	if i < 1 {
		l.RaiseError("bad argument to select: the index is out of range")
	}
	return max(n-i+1, 0)
}

func unpack(l *lua.LState) int {
	t := l.CheckTable(1)
	first, last := l.OptInt(2, 1), l.OptInt(3, border(t))
	if last < first {
		return 0
	}
	if first < -maxRegistry || last > maxRegistry {
		l.RaiseError("too many results to unpack")
	}
	spend(l, last-first+1, 0)
	for i := first; i <= last; i++ {
		l.Push(entry(t, i))
	}
	return last - first + 1
}

func tableConcat(l *lua.LState) int {
	t, separator := l.CheckTable(1), l.OptString(2, "")
	first, last := l.OptInt(3, 1), l.OptInt(4, border(t))
	out := buffer{l: l}
	for i := first; i <= last; i++ {
		v := entry(t, i)
		if !lua.LVCanConvToString(v) {
			l.RaiseError("invalid value (%s) at index %d in table for concat", v.Type(), i)
		}
		if i > first {
			out.add(separator)
		}
		out.add(v.String())
	}
	return out.push()
}

func tableInsert(l *lua.LState) int {
	t := l.CheckTable(1)
	n := border(t)
	at, v := n+1, l.Get(2)
	if l.GetTop() > 2 {
		at, v = l.CheckInt(2), l.Get(3)
	}
	if at > n+1 || at < 1 {
		l.RaiseError("bad argument to insert: the position is out of bounds")
	}
	spend(l, 1+n+1-at, entryBytes)
	for i := n; i >= at; i-- {
		t.RawSetInt(i+1, entry(t, i))
	}
	t.RawSetInt(at, v)
	return 0
}

func tableRemove(l *lua.LState) int {
	t := l.CheckTable(1)
	n := border(t)
	at := l.OptInt(2, n)
	if at < 1 || at > n {
		return 0
	}
	spend(l, 1+n-at, 0)
	l.Push(entry(t, at))
	for i := at; i <= n; i++ {
		t.RawSetInt(i, entry(t, i+1))
	}
	return 1
}

func tableSort(l *lua.LState) int {
	t := l.CheckTable(1)
	n := border(t)
	spend(l, n, n*entryBytes)
	values := make([]lua.LValue, n)
	for i := range values {
		values[i] = entry(t, i+1)
	}
	less := l.OptFunction(2, nil)
	slices.SortStableFunc(values, func(a, b lua.LValue) int {
		spend(l, 1, 0)
		switch {
		case isLess(l, less, a, b):
			return -1
		case isLess(l, less, b, a):
			return 1
		}
		return 0
	})
	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

func isLess(l *lua.LState, less *lua.LFunction, a, b lua.LValue) bool {
	if less == nil {
		return l.LessThan(a, b)
	}
	l.Push(less)
	l.Push(a)
	l.Push(b)
	l.Call(2, 1)
	defer l.Pop(1)
	return lua.LVAsBool(l.Get(-1))
}

// osTime returns the time of the evaluation, or that of a table in UTC.
func osTime(l *lua.LState) int {
	var at time.Time
	if t := l.OptTable(1, nil); t == nil {
		at = clock(l)
	} else {
		field := func(name string, otherwise int) int {
			n, ok := lua.LVAsNumber(t.RawGetString(name)), t.RawGetString(name) != lua.LNil
			if !ok {
				return otherwise
			}
			return int(n)
		}
		at = time.Date(field("year", 1970), time.Month(field("month", 1)), field("day", 1), field("hour", 12), field("min", 0),
			field("sec", 0), 0, time.UTC)
	}
	l.Push(lua.LNumber(at.Unix()))
	return 1
}

// layouts has Go's layouts of the verbs of os.date.
var layouts = map[byte]string{
	'%': "%", 'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': time.ANSIC, 'd': "02", 'D': "01/02/06", 'F': time.DateOnly, 'H': "15",
	'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'T': time.TimeOnly, 'x': "01/02/06", 'X': time.TimeOnly, 'y': "06",
	'Y': "2006", 'z': "-0700", 'Z': "MST",
}

// osDate formats a time in UTC; without one, that of the evaluation.
func osDate(l *lua.LState) int {
	format := strings.TrimPrefix(l.OptString(1, "%c"), "!")
	var at time.Time
	if l.GetTop() > 1 {
		at = time.Unix(l.CheckInt64(2), 0).UTC()
	} else {
		at = clock(l)
	}
	if format == "*t" {
		spend(l, 1, tableBytes+10*entryBytes)
		t := l.NewTable()
		for name, n := range map[string]int{
			"year": at.Year(), "month": int(at.Month()), "day": at.Day(), "hour": at.Hour(), "min": at.Minute(), "sec": at.Second(),
			"wday": int(at.Weekday()) + 1, "yday": at.YearDay(),
		} {
			t.RawSetString(name, lua.LNumber(n))
		}
		t.RawSetString("isdst", lua.LFalse)
		l.Push(t)
		return 1
	}
	out := buffer{l: l}
	for i := 0; i < len(format); i++ {
		if layout, ok := layouts[format[min(i+1, len(format)-1)]]; ok && format[i] == '%' {
			out.add(at.Format(layout))
			i++
			continue
		}
		out.add(format[i : i+1])
	}
	return out.push()
}
