package luascript

import (
	"context"
	"errors"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Limits of an evaluation.
const (
	// maxSteps bounds the instructions and the iterations within functions.
	maxSteps = 100_000
	// maxBytes bounds the memory that an evaluation allocates. It includes the object.
	maxBytes = 16 << 20
	// maxTime bounds an evaluation whose steps do not reflect its time.
	maxTime = 2 * time.Second
	// maxString bounds a string in bytes. Longer strings of the object are truncated. The interpreter copies strings into errors.
	maxString = 64 << 10
	// maxDepth bounds the calls and the nesting of the object.
	maxDepth = 100
	// maxRegistry bounds the values on the interpreter's stack.
	maxRegistry = 8 << 10
)

// Upper bounds of the memory that the interpreter allocates, in bytes.
const (
	// tableBytes is for a table and its first string key, which takes a map of 32 entries.
	tableBytes = 2560
	// entryBytes is for an entry of a table, which is in two maps and a list.
	entryBytes = 320
	// pcallBytes is for an error that pcall catches. Its text may have a string of maxString.
	pcallBytes = 64 << 10
)

// ErrTooExpensive ends an evaluation that exceeds a limit.
var ErrTooExpensive = errors.New("it costs too much")

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// meter counts the cost of an evaluation. The interpreter asks Done before each instruction.
type meter struct {
	context.Context //nolint:containedctx // the interpreter takes the meter as its context
	steps, bytes    int
	deadline        time.Time
	exceeded        bool
	now             time.Time // the time of the evaluation
	usesTime        bool
}

// Done counts an instruction. The channel is closed once a limit is exceeded. It stays closed, so that pcall cannot continue.
func (m *meter) Done() <-chan struct{} {
	if m.charge(1, 0); m.exceeded {
		return closed
	}
	return nil
}

// Err returns the error that ends the evaluation.
func (m *meter) Err() error {
	if m.exceeded {
		return ErrTooExpensive
	}
	return nil
}

func (m *meter) charge(steps, bytes int) {
	const clockEvery = 512 // steps
	late := m.steps/clockEvery != (m.steps+steps)/clockEvery && time.Now().After(m.deadline)
	m.steps += steps
	m.bytes += bytes
	if m.steps > maxSteps || m.bytes > maxBytes || late {
		m.exceeded = true
	}
}

// spend counts a cost within a function and raises an error if a limit is exceeded. Costs are not negative.
func spend(l *lua.LState, steps, bytes int) {
	m := meterOf(l)
	if m.charge(steps, bytes); m.exceeded {
		l.RaiseError("%s", ErrTooExpensive.Error())
	}
}

// clock returns the time of the evaluation to a function.
func clock(l *lua.LState) time.Time {
	m := meterOf(l)
	m.usesTime = true
	return m.now
}

func meterOf(l *lua.LState) *meter { return l.Context().(*meter) } //nolint:forcetypeassert // Judge sets it

// reserve counts a string before it is created.
func reserve(l *lua.LState, length int) {
	if length > maxString {
		l.RaiseError("a string exceeds %d bytes", maxString)
	}
	spend(l, 1+length/64, length)
}

// buffer is a string that grows. It counts its memory.
type buffer struct {
	l    *lua.LState
	text []byte
}

func (b *buffer) add(text string) {
	if len(b.text)+len(text) > maxString {
		b.l.RaiseError("a string exceeds %d bytes", maxString)
	}
	spend(b.l, 1+len(text)/64, 4*len(text)) // append copies the text when it grows
	b.text = append(b.text, text...)
}

// push returns the string to the script.
func (b *buffer) push() int {
	b.l.Push(lua.LString(b.text))
	return 1
}
