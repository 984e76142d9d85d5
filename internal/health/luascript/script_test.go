package luascript

import (
	"errors"
	"os"
	"runtime"
	"strconv"
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
	wide, deep := map[string]any{}, map[string]any{}
	for i := range 100_000 {
		wide[strconv.Itoa(i)] = true
	}
	for range 1000 {
		deep = map[string]any{"o": deep}
	}
	objects := map[string]map[string]any{
		"none": nil, "wide": wide, "deep": deep,
		"big":  {"s": strings.Repeat("a", 1<<20)},
		"long": {"list": make([]any, 200_000)},
	}
	text, err := os.ReadFile("testdata/limits.lua")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(text), "\n--- ")[1:]
	if len(cases) < 60 {
		t.Fatalf("testdata/limits.lua has %d scripts", len(cases))
	}
	for _, text := range cases {
		header, source, _ := strings.Cut(text, "\n")
		fields := strings.Split(header, "; ")
		reason, object, expensive := fields[0], objects[fields[1]], fields[2] == "limit"
		source = strings.Replace(source, "FIELDS", strings.Repeat("a = 1, ", maxFields-1), 1)
		s, err := Compile("health.lua", []byte(source))
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		result, err := s.Judge(object, now)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if took > 10*time.Second || allocated > 64<<20 {
			t.Errorf("%s took %s and allocated %d MiB, want less than 10 s and 64 MiB", reason, took, allocated>>20)
		}
		t.Logf("%s: %s, %d KiB, %s %v", reason, took.Round(time.Microsecond), allocated>>10, result.Status, err)
		if expensive && !errors.Is(err, ErrTooExpensive) {
			t.Errorf("%s gave %q, %v, want the error of a limit", reason, result.Status, err)
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
