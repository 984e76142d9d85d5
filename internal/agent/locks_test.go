package agent

import (
	"go/ast"
	"go/parser"
	"maps"
	"slices"
	"testing"
)

const module = "github.com/threeport/threeport-agent/internal/agent/"

// components are the packages whose mutexes are checked.
var components = []string{"informers", "assess", "reporter"}

// nesting is the lock order: all that the components acquire, or call, while they hold a mutex. The registry and the store
// are leaves: they call no component.
var nesting = []string{
	"informers.informerPool.mu > informers.informer.mu",
	"informers.tombstones.mu > target.Registry",
	"reporter.attributedObjects.mu > reporter.Store",
	"reporter.attributedObjects.mu > target.Registry",
}

// No component calls another one, an interface or a function value while it holds a mutex, and mutexes nest only as the
// lock order says.
func TestLocks_ComponentsCallNobodyWhileTheyHoldAMutex(t *testing.T) {
	found := map[string]bool{}
	for _, name := range components {
		c := load(t, module+name)
		c.checkAll()
		for _, v := range c.violations {
			t.Error(v)
		}
		maps.Copy(found, c.nested)
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, nesting) {
		t.Errorf("mutexes nest as %q, want %q", got, nesting)
	}
}

// The check finds each way to call out with a mutex held.
func TestLocks_CheckFindsViolations(t *testing.T) {
	const source = `package fake

import ("slices"; "sync"; "time")

type other interface{ Call() }

type component struct {
	mu   sync.Mutex
	next other
	call func()
}

func (c *component) callsInterface()  { c.mu.Lock(); defer c.mu.Unlock(); c.next.Call() }
func (c *component) callsFunction()   { c.mu.Lock(); c.call(); c.mu.Unlock() }
func (c *component) callsIndirectly() { c.mu.Lock(); defer c.mu.Unlock(); c.helper() }
func (c *component) helper()          { if c != nil { c.next.Call() } }
func (c *component) callsInLoop()     { c.mu.Lock(); defer c.mu.Unlock(); for range 3 { go func() {}(); c.call() } }
func (c *component) callsInPredicate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = slices.ContainsFunc([]int{1}, func(int) bool { c.call(); return true })
}
func (c *component) passesFunction() { c.each(func() { c.next.Call() }) }
func (c *component) each(f func())   { c.mu.Lock(); defer c.mu.Unlock(); f() }

func (c *component) isFine() {
	c.next.Call()
	c.mu.Lock()
	time.AfterFunc(time.Second, func() { c.call() })
	go c.call()
	if c.call == nil {
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.call()
	c.each(func() {})
}
`
	c := newChecker(module + "fake")
	file, err := parser.ParseFile(c.fset, "fake.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.typeCheck(t, []*ast.File{file}, exports(t, "slices", "sync", "time"))
	c.checkAll()
	got := map[string]bool{}
	for _, v := range c.violations {
		got[v.function] = true
	}
	want := []string{"callsFunction", "callsInLoop", "callsInPredicate", "callsIndirectly", "callsInterface", "passesFunction"}
	if got := slices.Sorted(maps.Keys(got)); !slices.Equal(got, want) {
		t.Errorf("violations are found in %q, want %q: %v", got, want, c.violations)
	}
}
