package luascript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// maxSource bounds a script in bytes.
const maxSource = 64 << 10

func init() {
	// All entries of tables are in maps. An array would be as long as the largest index.
	lua.MaxArrayIndex = 1
	// The variable arg of Lua 5.0 is a table that no expression creates.
	lua.CompatVarArg = false
}

// Script is a compiled script. It is safe for concurrent use.
type Script struct {
	proto *lua.FunctionProto
}

// SyntaxError is an error in a script that does not compile.
type SyntaxError struct {
	Line int // from 1; 0 for the whole script
	Text string
}

// Error returns the text. The caller names the file.
func (e *SyntaxError) Error() string { return e.Text }

// Compile compiles a script. The name is that of the file, for errors of evaluations. The error is a [SyntaxError].
func Compile(name string, source []byte) (s *Script, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, &SyntaxError{Text: fmt.Sprint(p)}
		}
	}()
	if len(source) > maxSource {
		return nil, &SyntaxError{Text: fmt.Sprintf("the script exceeds %d bytes", maxSource)}
	}
	chunk, err := parse.Parse(bytes.NewReader(source), name)
	var parsing *parse.Error
	switch {
	case errors.As(err, &parsing):
		text := parsing.Message
		if parsing.Token != "" {
			text = fmt.Sprintf("%s near %q", text, parsing.Token)
		}
		line := parsing.Pos.Line
		if line <= 0 { // at the end of the source
			line = bytes.Count(bytes.TrimRight(source, "\n"), []byte("\n")) + 1
		}
		return nil, &SyntaxError{Line: line, Text: text}
	case err != nil:
		return nil, &SyntaxError{Text: err.Error()}
	}
	chunk, line, err := rewrite(chunk)
	if err != nil {
		return nil, &SyntaxError{Line: line, Text: err.Error()}
	}
	proto, err := lua.Compile(chunk, name)
	var compiling *lua.CompileError
	switch {
	case errors.As(err, &compiling):
		return nil, &SyntaxError{Line: compiling.Line, Text: compiling.Message}
	case err != nil:
		return nil, &SyntaxError{Text: err.Error()}
	}
	return &Script{proto}, nil
}

// Result is the table that a script returns.
type Result struct {
	Status, Message string
	// UsesTime means that the script read the time, so that the result may change without the object.
	UsesTime bool
}

// Judge runs the script for an object. The error is [ErrTooExpensive] if a limit is exceeded.
func (s *Script) Judge(object map[string]any, now time.Time) (out Result, err error) {
	m := &meter{Context: context.Background(), deadline: time.Now().Add(maxTime), now: now.UTC()}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if m.exceeded {
			err = ErrTooExpensive
		}
		out.UsesTime = m.usesTime
	}()
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: maxDepth, MinimizeStackMemory: true,
		RegistrySize: 256, RegistryMaxSize: maxRegistry, RegistryGrowStep: 256,
	})
	defer l.Close()
	l.SetContext(m)
	openLibraries(l)
	obj, err := m.value(object, maxDepth)
	if err != nil {
		return Result{}, err
	}
	l.SetGlobal("obj", obj)
	l.Push(l.NewFunctionFromProto(s.proto))
	for _, f := range []lua.LGFunction{concat, length, newTable} {
		l.Push(l.NewFunction(f))
	}
	if err := l.PCall(3, 1, nil); err != nil {
		if raised, ok := errors.AsType[*lua.ApiError](err); ok {
			return Result{}, errors.New(raised.Object.String())
		}
		return Result{}, err
	}
	return result(l.Get(-1))
}

// result reads the table that a script returns.
func result(v lua.LValue) (out Result, err error) {
	hs, ok := v.(*lua.LTable)
	if !ok {
		return Result{}, fmt.Errorf("the script returned %s, not a table", v.Type())
	}
	status, ok := hs.RawGetString("status").(lua.LString)
	if !ok {
		return Result{}, fmt.Errorf("status is %s, not a string", hs.RawGetString("status").Type())
	}
	if m := hs.RawGetString("message"); lua.LVCanConvToString(m) {
		out.Message = m.String()
	}
	out.Status = string(status)
	return out, nil
}

// value converts a value of an object.
func (m *meter) value(v any, depth int) (lua.LValue, error) {
	switch v := v.(type) {
	case nil:
		return lua.LNil, nil
	case bool:
		return lua.LBool(v), nil
	case int64:
		return lua.LNumber(v), nil
	case float64:
		return lua.LNumber(v), nil
	case string:
		return lua.LString(v[:min(len(v), maxString)]), nil
	case []any:
		t, err := m.table(len(v), depth)
		for i := 0; i < len(v) && err == nil; i++ {
			var item lua.LValue
			if item, err = m.value(v[i], depth-1); err == nil {
				t.RawSetInt(i+1, item)
			}
		}
		return t, err
	case map[string]any:
		return m.fields(v, depth)
	}
	return nil, fmt.Errorf("the object has a value of type %T", v)
}

// fields converts an object. Its fields are in the order of their names, which is that of pairs.
func (m *meter) fields(v map[string]any, depth int) (lua.LValue, error) {
	t, err := m.table(len(v), depth)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		field, err := m.value(v[name], depth-1)
		if err != nil {
			return nil, err
		}
		t.RawSetString(name, field)
	}
	return t, nil
}

// table returns a table for a number of entries. It counts their memory before they are set.
func (m *meter) table(entries, depth int) (*lua.LTable, error) {
	if m.charge(1+entries, tableBytes+entries*entryBytes); m.exceeded || depth == 0 {
		return nil, ErrTooExpensive
	}
	return &lua.LTable{Metatable: lua.LNil}, nil
}
