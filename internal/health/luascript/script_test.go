package luascript

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// eval returns the message of a script that returns the value of an expression.
func eval(t *testing.T, source string, object map[string]any) (string, error) {
	t.Helper()
	s, err := Compile("health.lua", []byte(source))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	result, err := s.Judge(object, now)
	return result.Message, err
}

// TestJudge_Expressions compares expressions with their values in Lua 5.1.
func TestJudge_Expressions(t *testing.T) {
	object := map[string]any{
		"n": int64(3), "f": 1.5, "b": true, "s": "text", "null": nil,
		"list": []any{"a", "b", "c"}, "empty": []any{}, "map": map[string]any{"k": "v", "a": "w"},
	}
	for _, tt := range []struct{ expression, want string }{
		{`obj.n`, "3"},
		{`obj.f`, "1.5"},
		{`tostring(obj.b)`, "true"},
		{`tostring(obj.null)`, "nil"},
		{`obj.s .. 1 .. "x" .. obj.n`, "text1x3"},
		{`#obj.list`, "3"},
		{`#obj.empty`, "0"},
		{`#obj.s`, "4"},
		{`obj.list[2]`, "b"},
		{`#{1, 2, 3, nil}`, "3"},
		{`#{(function() return 1, 2 end)()}`, "2"},
		{`(function() return "x", "y" end)() .. "z"`, "xz"},
		{`(function(...) return select("#", ...) .. select(2, ...) end)(1, 2, 3)`, "32"},
		{`(function(...) return select(-1, ...) end)(1, 2, 3)`, "3"},
		{`#{(function(...) return ... end)(1, 2, 3, 4)}`, "4"},
		{`(function() local s = "" for k, v in pairs(obj.map) do s = s .. k .. v end return s end)()`, "awkv"},
		{`(function() local s = "" for i, v in ipairs(obj.list) do s = s .. i .. v end return s end)()`, "1a2b3c"},
		{`(function() local n = 0 for _ in pairs({1, 2, x = 3, [true] = 4}) do n = n + 1 end return n end)()`, "4"},
		{`tostring(next({}))`, "nil"},
		{`unpack({"p", "q"}, 2)`, "q"},
		{`type(obj.map)`, "table"},
		{`tonumber("12") + 1`, "13"},
		{`tostring(pcall(error, "no"))`, "false"},
		{`select(2, pcall(error, {code = 7})).code`, "7"},
		{`(function() local ok, e = pcall(function() return obj.nothing.x end) return tostring(ok) end)()`, "false"},
		{`(select(2, pcall(function() return "v" end)))`, "v"},
		{`table.concat({"a", "b", "c"}, ", ")`, "a, b, c"},
		{`table.concat({1, 2, 3}, "-", 2, 3)`, "2-3"},
		{`table.concat({})`, ""},
		{`(function() local t = {1, 3} table.insert(t, 4) table.insert(t, 2, 2) return table.concat(t) end)()`, "1234"},
		{`(function() local t = {1, 2, 3} return table.remove(t) .. table.remove(t, 1) .. #t end)()`, "311"},
		{`(function() local t = {3, 1, 2} table.sort(t) return table.concat(t) end)()`, "123"},
		{`(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t) end)()`, "321"},
		{`(function() local t = {} for i = 1, 100 do t[#t + 1] = i end t[#t] = nil return #t end)()`, "99"},
		{`string.sub("hello", 2, -2)`, "ell"},
		{`("hello"):sub(-3)`, "llo"},
		{`("hello"):sub(4, 2)`, ""},
		{`("x"):rep(3)`, "xxx"},
		{`("Abc"):upper() .. ("Abc"):lower() .. ("Abc"):reverse()`, "ABCabccbA"},
		{`("abc"):byte(2)`, "98"},
		{`string.char(72, 105)`, "Hi"},
		{`("hello"):len()`, "5"},
		{`string.format("%d of %s, %.2f%% %5s|%-5s|%x", 2, "n", 1.5, "a", "b", 255)`, "2 of n, 1.50%     a|b    |ff"},
		{`string.format("%s %s %q", nil, true, "a b")`, `nil true "a b"`},
		{`string.format("%03d %i %c", "7", 2.0, 65)`, "007 2 A"},
		{`string.find("hello", "l")`, "3"},
		{`string.find("a.b", ".", 1, true)`, "2"},
		{`select(2, string.find("hello", "l+"))`, "4"},
		{`tostring(string.find("hello", "x"))`, "nil"},
		{`tostring(string.find("hello", "^e"))`, "nil"},
		{`string.find("hello", "", 9) or "none"`, "none"},
		{`string.match("v1.22.3", "^v(%d+)%.(%d+)")`, "1"},
		{`select(2, string.match("v1.22.3", "^v(%d+)%.(%d+)"))`, "22"},
		{`string.match("key = value", "^(%w+)%s*=%s*(%w+)$")`, "key"},
		{`string.match("  trim  ", "^%s*(.-)%s*$")`, "trim"},
		{`string.match("[x]", "%[(.-)%]")`, "x"},
		{`string.match("f(a(b)c)d", "%b()")`, "(a(b)c)"},
		{`string.match("THE (quick) fox", "%f[%a]%a+%f[%A]")`, "THE"},
		{`string.match("abcabc", "(abc)%1")`, "abc"},
		{`string.match("hello", "()ll")`, "3"},
		{`string.match("a-b_c", "[%w_-]+")`, "a-b_c"},
		{`string.match("x]y", "[]]")`, "]"},
		{`string.match("2026-01-31", "[^-]+")`, "2026"},
		{`tostring(string.match("abc", "%d"))`, "nil"},
		{`string.match("aaa", "a-$")`, "aaa"},
		{`string.match("ac", "ab?c")`, "ac"},
		{`string.match("0xFf", "%x+", 3)`, "Ff"},
		{`(string.gsub("hello world", "o", "0"))`, "hell0 w0rld"},
		{`(string.gsub("hello", "", "-"))`, "-h-e-l-l-o-"},
		{`select(2, string.gsub("hello", "l", "L", 1))`, "1"},
		{`(string.gsub("ab", "(%w)(%w)", "%2%1%0%%"))`, "baab%"},
		{`(string.gsub("$a $b", "%$(%w)", {a = "x"}))`, "x $b"},
		{`(string.gsub("abc", "%w", function(c) if c == "b" then return "B" end end))`, "aBc"},
		{`(string.gsub("abc abc", "^abc", "x"))`, "x abc"},
		{`(function() local s = "" for w in string.gmatch("one two", "%a+") do s = s .. "<" .. w .. ">" end return s end)()`, "<one><two>"},
		{`(function() local s = "" for k, v in string.gmatch("a=1, b=2", "(%w+)=(%w+)") do s = s .. k .. v end return s end)()`, "a1b2"},
		{`math.floor(3.7) .. math.max(1, 5)`, "35"},
		{`tostring(math.huge > 1e308)`, "true"},
		{`tostring(math.random)`, "nil"},
		{`os.time()`, "1769860800"},
		{`os.time({year = 2026, month = 1, day = 31, hour = 12, min = 0, sec = 5})`, "1769860805"},
		{`os.date("%Y-%m-%dT%H:%M:%SZ %%")`, "2026-01-31T12:00:00Z %"},
		{`os.date("!*t", 86400).day`, "2"},
		{`os.date("%Y", 0)`, "1970"},
		{`os.clock()`, "0"},
		{`_VERSION`, "Lua 5.1"},
		{`tostring(_G.obj == obj)`, "true"},
		{`setmetatable({}, {__index = function(_, k) return k end}).name`, "name"},
	} {
		got, err := eval(t, `local v = `+tt.expression+` return {status = "Healthy", message = v}`, object)
		if err != nil || got != tt.want {
			t.Errorf("%s is %q (%v), want %q", tt.expression, got, err, tt.want)
		}
	}
}

// TestJudge_Sandbox checks that a script reaches nothing outside of its evaluation.
func TestJudge_Sandbox(t *testing.T) {
	for _, name := range []string{
		"dofile", "loadfile", "load", "loadstring", "require", "module", "collectgarbage", "setfenv", "getfenv", "newproxy", "xpcall",
		"_printregs", "io", "debug", "package", "coroutine", "channel", "arg", "os.exit", "os.execute", "os.getenv", "os.remove", "os.rename",
		"os.tmpname", "os.setlocale", "string.dump", "math.randomseed",
	} {
		if got, err := eval(t, `return {status = "Healthy", message = tostring(`+name+`)}`, nil); err != nil || got != "nil" {
			t.Errorf("%s is %q (%v), want nil", name, got, err)
		}
	}
	if _, err := eval(t, `string.find = nil string.x = 1 getmetatable("").__index = nil obj.n = 2 leaked = 1 return {status = "Healthy"}`,
		map[string]any{}); err != nil {
		t.Error(err)
	}
	got, err := eval(t, `return {status = "Healthy", message = ("ab"):find("b") .. tostring(leaked) .. tostring(string.x)}`, nil)
	if err != nil || got != "2nilnil" {
		t.Errorf("an evaluation changed the next one: %q, %v", got, err)
	}
}

// TestJudge_Limits runs scripts that try to exceed each limit. The allocation counts garbage too.
func TestJudge_Limits(t *testing.T) {
	big := map[string]any{"s": strings.Repeat("a", 1<<20)}
	long := map[string]any{"list": make([]any, 200_000)}
	wide := map[string]any{}
	for i := range 100_000 {
		wide[strings.Repeat("k", 5)+string(rune('0'+i%10))+time.Duration(i).String()] = true
	}
	deep := map[string]any{}
	for range 1000 {
		deep = map[string]any{"o": deep}
	}
	fields := strings.Repeat("a = 1, ", maxFields-1)
	for _, tt := range []struct {
		reason, source string
		object         map[string]any
		expensive      bool // the evaluation has to fail by a limit of all; otherwise it may end by another error
	}{
		{"endless loop", `while true do end`, nil, true},
		{"endless repeat", `repeat until false`, nil, true},
		{"goto", `::a:: goto a`, nil, true},
		{"empty numeric loop", `for i = 1, 1e15 do end`, nil, true},
		{"recursion", `local function f() return 1 + f() end return f()`, nil, false},
		{"tail recursion", `local function f() return f() end return f()`, nil, true},
		{"recursion through pcall", `local function f() pcall(f) end f() return {status = "Healthy"}`, nil, false},
		{"recursion through metamethods", `local t t = setmetatable({}, {__index = function(_, k) return t[k + 1] end}) return t[1]`, nil, false},
		{"recursion through gsub", `local function f() return (string.gsub("a", "a", f)) end return f()`, nil, false},
		{"endless loop in pcall", `while true do pcall(function() while true do end end) end`, nil, true},
		{"pcall around the limit", `pcall(function() while true do end end) return {status = "Healthy"}`, nil, true},
		{"pcall of a limit of a function", `pcall(function() for i = 1, 1e6 do string.rep("x", 60000) end end) return {status = "Healthy"}`, nil, true},
		{"errors in pcall", `while true do pcall(error, "x") end`, nil, true},
		{"long errors in pcall", `local s = string.rep("x", 60000) while true do pcall(error, s) pcall(function() return s + 1 end) end`, nil, true},
		{"string doubling", `local s = "x" while true do s = s .. s end`, nil, false},
		{"strings kept", `local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 60000) .. i end`, nil, true},
		{"concatenation chain", `local s = string.rep("x", 60000) while true do local v = "" .. s .. "" .. "y" end`, nil, true},
		{"rep", `return string.rep("x", 1e18)`, nil, false},
		{"rep of an empty string", `return {status = "Healthy", message = string.rep("", 1e18)}`, nil, false},
		{"upper", `while true do string.upper(obj.s) end`, big, true},
		{"huge index", `local t = {} t[50000000] = 1 return {status = "Healthy"}`, nil, false},
		{"huge indices", `local t = {} for i = 1, 1e9 do t = {} t[60000] = 1 end`, nil, true},
		{"insert at a huge index", `table.insert({}, 50000000, 1)`, nil, false},
		{"insert at the start", `local t = {} while true do table.insert(t, 1, 1) end`, nil, true},
		{"entries", `local t = {} local i = 0 while true do i = i + 1 t[i] = true end`, nil, true},
		{"string keys", `local t = {} local i = 0 while true do i = i + 1 t[i .. ""] = true end`, nil, true},
		{"tables", `local t = {} local i = 0 while true do i = i + 1 t[i] = {a = 1} end`, nil, true},
		{"tables that get a field", `local x while true do x = {} x.a = 1 x[1] = 1 end`, nil, true},
		{"closures", `local t = {} local i = 0 while true do i = i + 1 t[i] = function() return i end end`, nil, true},
		{"variable arguments in tables", `local function f(...) while true do local t = {...} end end f(string.byte(obj.s, 1, 4000))`, big, true},
		{"arg", `local function f(...) local t = arg return f(1, ...) end f()`, nil, false},
		{"constructor that fails", `while true do pcall(function() return {` + fields + ` b = error()} end) end`, nil, true},
		{"unpack", `unpack({}, 1, 1e9)`, nil, false},
		{"unpack of many", `while true do pcall(unpack, {}, 1, 8000) end`, nil, true},
		{"unpack of negative", `return unpack({}, -1e18, 1e18)`, nil, false},
		{"byte", `while true do string.byte(obj.s, 1, 4000) end`, big, true},
		{"many bytes", `return string.byte(obj.s, 1, -1)`, big, false},
		{"table.concat", `local s = string.rep("x", 60000) table.concat({s, s, s, s})`, nil, false},
		{"table.concat many times", `local t = {} for i = 1, 1000 do t[i] = "0123456789" end while true do table.concat(t, ", ") end`, nil, true},
		{"table.concat of a huge range", `return table.concat({}, "", 1, 1e18)`, nil, false},
		{"gsub with a long replacement", `string.gsub(string.rep("x", 60000), "x", string.rep("y", 60000))`, nil, false},
		{"gsub with captures", `string.gsub(string.rep("x", 30000), ".+", string.rep("%0", 20000))`, nil, false},
		{"gsub many times", `while true do string.gsub(obj.s, "a", "b") end`, big, true},
		{"format with a width", `return string.format("%999999999d", 1)`, nil, false},
		{"format with a precision", `return string.format("%.999999999f", 1)`, nil, false},
		{"format with an argument as width", `return string.format("%*d", 999999999, 1)`, nil, false},
		{"format with an index", `return string.format("%[1]s%[1]s", "x")`, nil, false},
		{"format many times", `local s = string.rep("x", 60000) while true do string.format("%q", s) end`, nil, true},
		{"format of many", `return string.format(string.rep("%99d", 1000), unpack({}, 1, 1000))`, nil, false},
		{"sort", `local t = {} for i = 1, 5000 do t[i] = -i end while true do table.sort(t) end`, nil, true},
		{"sort with an endless function", `table.sort({2, 1}, function() while true do end end)`, nil, true},
		{"sort with an inconsistent function", `table.sort({3, 2, 1, 5, 4}, function() return true end) return {status = "Healthy"}`, nil, false},
		{"backtracking", `string.find(obj.s, ".-.-.-.-.-.-b")`, big, true},
		{"greedy backtracking", `string.match(obj.s, "a*a*a*a*a*a*b")`, big, true},
		{"backtracking in gmatch", `for w in string.gmatch(obj.s, "(a*)(a*)(a*)b") do end`, big, true},
		{"backtracking in pcall", `while true do pcall(string.find, obj.s, ".-.-.-b") end`, big, true},
		{"balanced", `local s = string.rep("(", 60000) while true do string.find(s, "%b()") end`, nil, true},
		{"back reference", `while true do string.find(obj.s, "(a*)%1b") end`, big, true},
		{"sets", `while true do string.find(obj.s, "[" .. string.rep("bc", 400) .. "]") end`, big, true},
		{"nested captures", `return string.find(obj.s, string.rep("(", 500))`, big, false},
		{"long pattern", `return string.find(obj.s, string.rep("a?", 4000))`, big, false},
		{"deep pattern", `return string.find(obj.s, string.rep("a?", 500) .. "b")`, big, true},
		{"next over deleted keys", `local t = {} for i = 1, 10000 do t[i] = 1 t[i] = nil end while true do next(t) end`, nil, true},
		{"long keys", `local t = {} while true do t[obj.s] = 1 end`, big, true},
		{"tostring of itself", `local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)`, nil, false},
		{"date", `return os.date(string.rep("%c", 30000))`, nil, false},
		{"long object", `return {status = "Healthy"}`, long, true},
		{"wide object", `return {status = "Healthy"}`, wide, true},
		{"deep object", `return {status = "Healthy"}`, deep, true},
	} {
		s, err := Compile("health.lua", []byte(tt.source))
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		result, err := s.Judge(tt.object, now)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if took > 10*time.Second || allocated > 64<<20 {
			t.Errorf("%s took %s and allocated %d MiB, want less than 10 s and 64 MiB", tt.reason, took, allocated>>20)
		}
		t.Logf("%s: %s, %d KiB, %s %v", tt.reason, took.Round(time.Microsecond), allocated>>10, result.Status, err)
		if tt.expensive && !errors.Is(err, ErrTooExpensive) {
			t.Errorf("%s gave %q, %v, want the error of a limit", tt.reason, result.Status, err)
		}
	}
}

// TestMeter_Deadline checks the limit of time, which needs few steps.
func TestMeter_Deadline(t *testing.T) {
	m := &meter{deadline: time.Now().Add(-time.Second)}
	for range 1000 {
		m.Done()
	}
	if m.Err() == nil {
		t.Error("1000 steps after the deadline are no error")
	}
}

func TestCompile_Errors(t *testing.T) {
	for _, tt := range []struct {
		source, want string
		line         int
	}{
		{"local hs = {}\nhs.status == 1\nreturn hs", "parse error near \"==\"", 2},
		{"local hs = {}\nif obj then\n", "syntax error near", 2},
		{"local hs = {}\n\nbreak", "", 3},
		{"x = \"open", "", 1},
		{strings.Repeat("-", maxSource+1), "the script exceeds 65536 bytes", 0},
		{"\nx = {" + strings.Repeat("1,", maxFields+1) + "}", "a table has 257 fields, and may have 256", 2},
	} {
		_, err := Compile("health.lua", []byte(tt.source))
		var e *SyntaxError
		if !errors.As(err, &e) || e.Line != tt.line || !strings.Contains(e.Text, tt.want) {
			t.Errorf("%.30q gives %v (%+v), want %q at line %d", tt.source, err, e, tt.want, tt.line)
		}
	}
	for _, source := range []string{
		strings.Repeat("(", 60000), "return " + strings.Repeat("{", 20000), "x = " + strings.Repeat("-", 300) + "1",
		"x = " + strings.Repeat("'a' .. ", 9000) + "'a'", strings.Repeat("do ", 20000), "x = " + strings.Repeat("not ", 15000) + "1",
	} {
		start := time.Now()
		_, err := Compile("health.lua", []byte(source))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%.20q took %s (%v)", source, took, err)
		}
	}
}

func TestJudge_Errors(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{``, "the script returned nil, not a table"},
		{`return "Healthy"`, "the script returned string, not a table"},
		{`return {}`, "status is nil, not a string"},
		{`return {status = {}}`, "status is table, not a string"},
		{"\nreturn obj.status.phase", "health.lua:2: attempt to index a non-table object(nil) with key 'phase'"},
		{"\nreturn \"a\" .. nil", "health.lua:2: attempt to concatenate a nil value"},
		{"\n\nreturn #obj.x", "health.lua:3: attempt to get length of a nil value"},
		{`error("no")`, "health.lua:1: no"},
		{`error({})`, "table: "},
		{`string.find("x", "[")`, "health.lua:1: malformed pattern (missing ])"},
		{`math.fmod()`, "bad argument #1"},
	} {
		if _, err := eval(t, tt.source, map[string]any{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q gives %v, want %q", tt.source, err, tt.want)
		}
	}
	if _, err := eval(t, `return {status = "Healthy"}`, map[string]any{"x": struct{}{}}); err == nil {
		t.Error("a value of an unknown type is no error")
	}
}

// script is in the style of Argo CD's: it loops over the conditions.
const script = `
local hs = { status = "Progressing", message = "Waiting for the controller" }
if obj.status ~= nil then
  if obj.status.observedGeneration ~= nil and obj.status.observedGeneration < obj.metadata.generation then
    return hs
  end
  if obj.status.conditions ~= nil then
    for i, condition in ipairs(obj.status.conditions) do
      if condition.type == "Ready" and condition.status == "False" then
        if string.find(condition.reason or "", "Fail") then
          hs.status = "Degraded"
        end
        hs.message = condition.reason .. ": " .. condition.message
        return hs
      end
      if condition.type == "Ready" and condition.status == "True" then
        hs.status = "Healthy"
        hs.message = condition.message
        return hs
      end
    end
  end
end
return hs`

func object() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "w", "generation": int64(2)},
		"status": map[string]any{"observedGeneration": int64(2), "conditions": []any{
			map[string]any{"type": "Synced", "status": "True"},
			map[string]any{"type": "Ready", "status": "False", "reason": "DiskFailed", "message": "There is no disk"},
		}},
	}
}

func TestJudge_Concurrent(t *testing.T) {
	s, err := Compile("health.lua", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				want := Result{Status: "Degraded", Message: "DiskFailed: There is no disk"}
				if got, err := s.Judge(object(), now); got != want || err != nil {
					t.Errorf("got %+v, %v, want %+v", got, err, want)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkJudge(b *testing.B) {
	s, err := Compile("health.lua", []byte(script))
	if err != nil {
		b.Fatal(err)
	}
	o := object()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Judge(o, now); err != nil {
			b.Fatal(err)
		}
	}
}
