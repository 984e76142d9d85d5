-- Scripts that try to exceed a limit. Each begins with a line: reason, object, and how it has to end.
--- endless loop; none; limit
while true do end
--- endless repeat; none; limit
repeat until false
--- goto; none; limit
::a:: goto a
--- empty numeric loop; none; limit
for i = 1, 1e15 do end
--- recursion; none; any
local function f() return 1 + f() end return f()
--- tail recursion; none; limit
local function f() return f() end return f()
--- recursion through pcall; none; any
local function f() pcall(f) end f() return {status = "Healthy"}
--- recursion through metamethods; none; any
local t t = setmetatable({}, {__index = function(_, k) return t[k + 1] end}) return t[1]
--- recursion through gsub; none; any
local function f() return (string.gsub("a", "a", f)) end return f()
--- endless loop in pcall; none; limit
while true do pcall(function() while true do end end) end
--- pcall around the limit; none; limit
pcall(function() while true do end end) return {status = "Healthy"}
--- pcall of a limit of a function; none; limit
pcall(function() for i = 1, 1e6 do string.rep("x", 60000) end end) return {status = "Healthy"}
--- errors in pcall; none; limit
while true do pcall(error, "x") end
--- long errors in pcall; none; limit
local s = string.rep("x", 60000) while true do pcall(error, s) pcall(function() return s + 1 end) end
--- string doubling; none; any
local s = "x" while true do s = s .. s end
--- strings kept; none; limit
local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 60000) .. i end
--- concatenation chain; none; limit
local s = string.rep("x", 60000) while true do local v = "" .. s .. "" .. "y" end
--- rep; none; any
return string.rep("x", 1e18)
--- rep of an empty string; none; any
return {status = "Healthy", message = string.rep("", 1e18)}
--- upper; big; limit
while true do string.upper(obj.s) end
--- huge index; none; any
local t = {} t[50000000] = 1 return {status = "Healthy"}
--- huge indices; none; limit
local t = {} for i = 1, 1e9 do t = {} t[60000] = 1 end
--- insert at a huge index; none; any
table.insert({}, 50000000, 1)
--- insert at the start; none; limit
local t = {} while true do table.insert(t, 1, 1) end
--- entries; none; limit
local t = {} local i = 0 while true do i = i + 1 t[i] = true end
--- string keys; none; limit
local t = {} local i = 0 while true do i = i + 1 t[i .. ""] = true end
--- tables; none; limit
local t = {} local i = 0 while true do i = i + 1 t[i] = {a = 1} end
--- tables that get a field; none; limit
local x while true do x = {} x.a = 1 x[1] = 1 end
--- closures; none; limit
local t = {} local i = 0 while true do i = i + 1 t[i] = function() return i end end
--- variable arguments in tables; big; limit
local function f(...) while true do local t = {...} end end f(string.byte(obj.s, 1, 4000))
--- arg; none; any
local function f(...) local t = arg return f(1, ...) end f()
--- constructor that fails; none; limit
while true do pcall(function() return {FIELDS b = error()} end) end
--- unpack; none; any
unpack({}, 1, 1e9)
--- unpack of many; none; limit
while true do pcall(unpack, {}, 1, 8000) end
--- unpack of negative; none; any
return unpack({}, -1e18, 1e18)
--- byte; big; limit
while true do string.byte(obj.s, 1, 4000) end
--- many bytes; big; any
return string.byte(obj.s, 1, -1)
--- table.concat; none; any
local s = string.rep("x", 60000) table.concat({s, s, s, s})
--- table.concat many times; none; limit
local t = {} for i = 1, 1000 do t[i] = "0123456789" end while true do table.concat(t, ", ") end
--- table.concat of a huge range; none; any
return table.concat({}, "", 1, 1e18)
--- gsub with a long replacement; none; any
string.gsub(string.rep("x", 60000), "x", string.rep("y", 60000))
--- gsub with captures; none; any
string.gsub(string.rep("x", 30000), ".+", string.rep("%0", 20000))
--- gsub many times; big; limit
while true do string.gsub(obj.s, "a", "b") end
--- format with a width; none; any
return string.format("%999999999d", 1)
--- format with a precision; none; any
return string.format("%.999999999f", 1)
--- format with an argument as width; none; any
return string.format("%*d", 999999999, 1)
--- format with an index; none; any
return string.format("%[1]s%[1]s", "x")
--- format many times; none; limit
local s = string.rep("x", 60000) while true do string.format("%q", s) end
--- format of many; none; any
return string.format(string.rep("%99d", 1000), unpack({}, 1, 1000))
--- sort; none; limit
local t = {} for i = 1, 5000 do t[i] = -i end while true do table.sort(t) end
--- sort with an endless function; none; limit
table.sort({2, 1}, function() while true do end end)
--- sort with an inconsistent function; none; any
table.sort({3, 2, 1, 5, 4}, function() return true end) return {status = "Healthy"}
--- backtracking; big; limit
string.find(obj.s, ".-.-.-.-.-.-b")
--- greedy backtracking; big; limit
string.match(obj.s, "a*a*a*a*a*a*b")
--- backtracking in gmatch; big; limit
for w in string.gmatch(obj.s, "(a*)(a*)(a*)b") do end
--- backtracking in pcall; big; limit
while true do pcall(string.find, obj.s, ".-.-.-b") end
--- balanced; none; limit
local s = string.rep("(", 60000) while true do string.find(s, "%b()") end
--- back reference; big; limit
while true do string.find(obj.s, "(a*)%1b") end
--- sets; big; limit
while true do string.find(obj.s, "[" .. string.rep("bc", 400) .. "]") end
--- nested captures; big; any
return string.find(obj.s, string.rep("(", 500))
--- long pattern; big; any
return string.find(obj.s, string.rep("a?", 4000))
--- deep pattern; big; limit
return string.find(obj.s, string.rep("a?", 500) .. "b")
--- next over deleted keys; none; limit
local t = {} for i = 1, 10000 do t[i] = 1 t[i] = nil end while true do next(t) end
--- long keys; big; limit
local t = {} while true do t[obj.s] = 1 end
--- tostring of itself; none; any
local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)
--- date; none; any
return os.date(string.rep("%c", 30000))
--- long object; long; limit
return {status = "Healthy"}
--- wide object; wide; limit
return {status = "Healthy"}
--- deep object; deep; limit
return {status = "Healthy"}
--- pcall within pcall around the limit; none; limit
local function f(n) if n == 0 then while true do end end pcall(f, n - 1) while true do end end
f(20) return {status = "Healthy"}
--- limit within sort within pcall; none; limit
while true do pcall(table.sort, {3, 2, 1}, function() while true do end end) end
--- replaced functions of the sandbox; none; limit
pcall = nil getmetatable("").__index = nil _G["(table)"] = function(t) return t end
local t = {} while true do t = {t} end
--- functions of the chunk; none; limit
local a, b, c = ... while true do c({}) end
--- strings to numbers in pcall; none; limit
local s = ("9"):rep(60000) while true do pcall(function() for i = s, 2 do end end) end
--- long names in errors; none; limit
local t = {} local s = ("x"):rep(60000) while true do pcall(function() return t[s].x end) pcall(function() t[s]() end) end
--- select of a long text; big; limit
while true do pcall(select, obj.s) pcall(tonumber, obj.s) end
--- metatable of strings; big; any
getmetatable("").__index = function(s) return s .. s end while true do local x = obj.s.x end
--- nil as a key; none; any
local t = {} t[nil] = 1
--- rawset of nil; none; any
rawset({}, nil, 1) return {status = "Healthy"}
--- arithmetic of long texts; none; limit
local s = ("1"):rep(60000) while true do pcall(function() return -s + s * s end) end
