package agent

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checker finds calls out of a package with a mutex held. It follows calls of the package's own functions, and function
// literals that are passed to them. Statements are read in their order: a mutex is held from Lock to Unlock, or to the end
// of the function if Unlock is deferred.
type checker struct {
	path       string
	fset       *token.FileSet
	info       *types.Info
	pkg        *types.Package
	functions  map[*types.Func]*ast.FuncDecl
	violations []violation
	nested     map[string]bool // "outer > inner"
	visited    map[string]bool
}

type violation struct{ function, text string }

func (v violation) String() string { return v.function + ": " + v.text }

// scope is where a statement is checked.
type scope struct {
	entry string   // the function at which the check began
	held  []string // mutexes
	// funcs are the known values of variables and parameters of function type.
	funcs map[types.Object]callable
}

// callable is a function value: a literal with the scope in which it is defined, or a declared function.
type callable struct {
	literal *ast.FuncLit
	funcs   map[types.Object]callable
	decl    *types.Func
}

func newChecker(path string) *checker {
	return &checker{
		path: path, fset: token.NewFileSet(), functions: map[*types.Func]*ast.FuncDecl{},
		nested: map[string]bool{}, visited: map[string]bool{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
	}
}

// load parses and type-checks a package of this module.
func load(t *testing.T, path string) *checker {
	t.Helper()
	c := newChecker(path)
	names, err := filepath.Glob(filepath.Join(strings.TrimPrefix(path, module), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(c.fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	c.typeCheck(t, files, exports(t, path))
	return c
}

// exports returns the files with the export data of packages and their dependencies.
func exports(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds programs, so that both share the build cache
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files
}

func (c *checker) typeCheck(t *testing.T, files []*ast.File, exports map[string]string) {
	t.Helper()
	config := types.Config{Importer: importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	var err error
	if c.pkg, err = config.Check(c.path, c.fset, files, c.info); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				c.functions[c.info.Defs[decl.Name].(*types.Func)] = decl
			}
		}
	}
}

// checkAll checks each function as if it is called with no mutex held.
func (c *checker) checkAll() {
	for f, decl := range c.functions {
		c.body(decl.Body, scope{entry: f.Name(), funcs: map[types.Object]callable{}})
	}
}

// body checks a function body. Mutexes that it acquires do not outlive it.
func (c *checker) body(block *ast.BlockStmt, s scope) {
	s.held = slices.Clone(s.held)
	c.statements(block.List, &s)
}

func (c *checker) statements(list []ast.Stmt, s *scope) {
	for _, stmt := range list {
		c.statement(stmt, s)
	}
}

// branch checks statements whose mutexes are not held after them.
func (c *checker) branch(s *scope, list ...ast.Stmt) {
	inner := scope{s.entry, slices.Clone(s.held), s.funcs}
	for _, stmt := range list {
		if stmt != nil {
			c.statement(stmt, &inner)
		}
	}
}

func (c *checker) statement(stmt ast.Stmt, s *scope) {
	switch st := stmt.(type) {
	case *ast.ExprStmt:
		if c.lockOrUnlock(st.X, s) {
			return
		}
		c.expression(st.X, s)
	case *ast.DeferStmt:
		if _, locks := c.mutex(st.Call); !locks {
			c.expression(st.Call, s)
		}
	case *ast.GoStmt:
		c.expression(st.Call, &scope{entry: s.entry, funcs: s.funcs})
	case *ast.BlockStmt:
		c.branch(s, st.List...)
	case *ast.IfStmt:
		c.branch(s, st.Init, &ast.ExprStmt{X: st.Cond}, st.Body, st.Else)
	case *ast.ForStmt:
		if st.Cond != nil {
			c.expression(st.Cond, s)
		}
		c.branch(s, st.Init, st.Body, st.Post)
	case *ast.RangeStmt:
		c.expression(st.X, s)
		c.branch(s, st.Body)
	case *ast.SwitchStmt:
		if st.Tag != nil {
			c.expression(st.Tag, s)
		}
		c.branch(s, st.Init, st.Body)
	case *ast.TypeSwitchStmt:
		c.branch(s, st.Init, st.Assign, st.Body)
	case *ast.SelectStmt:
		c.branch(s, st.Body)
	case *ast.CaseClause:
		for _, e := range st.List {
			c.expression(e, s)
		}
		c.branch(s, st.Body...)
	case *ast.CommClause:
		c.branch(s, append([]ast.Stmt{st.Comm}, st.Body...)...)
	case *ast.AssignStmt:
		c.bindVariables(st, s)
		c.expression(st, s)
	default:
		c.expression(stmt, s)
	}
}

// bindVariables remembers the function literals that are assigned to variables.
func (c *checker) bindVariables(st *ast.AssignStmt, s *scope) {
	for i, left := range st.Lhs {
		name, ok := left.(*ast.Ident)
		if !ok || i >= len(st.Rhs) {
			continue
		}
		if f, ok := c.value(st.Rhs[i], s); ok {
			s.funcs[c.object(name)] = f
		}
	}
}

func (c *checker) object(name *ast.Ident) types.Object {
	if o := c.info.Defs[name]; o != nil {
		return o
	}
	return c.info.Uses[name]
}

// value returns the function that an expression stands for, if that is known.
func (c *checker) value(e ast.Expr, s *scope) (callable, bool) {
	switch x := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return callable{literal: x, funcs: s.funcs}, true
	case *ast.Ident:
		if f, ok := c.info.Uses[x].(*types.Func); ok {
			return callable{decl: f}, true
		}
		f, ok := s.funcs[c.info.Uses[x]]
		return f, ok
	case *ast.SelectorExpr:
		f, ok := c.info.Uses[x.Sel].(*types.Func)
		return callable{decl: f}, ok
	}
	return callable{}, false
}

// expression checks the calls in an expression. A function literal that is only passed or stored runs later, so its body
// is checked with no mutex held.
func (c *checker) expression(n ast.Node, s *scope) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			c.body(x.Body, scope{entry: s.entry, funcs: s.funcs})
			return false
		case *ast.CallExpr:
			c.call(x, s)
			return false
		}
		return true
	})
}

// runsLater are the functions that call their argument in another goroutine.
var runsLater = []string{"time.AfterFunc", "context.AfterFunc", "(*sync.WaitGroup).Go"}

func (c *checker) call(call *ast.CallExpr, s *scope) {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		c.expression(sel.X, s)
	}
	callee, known := c.value(call.Fun, s)
	own := known && callee.decl != nil && c.functions[callee.decl.Origin()] != nil
	later := known && callee.decl != nil && slices.Contains(runsLater, callee.decl.FullName())
	for _, arg := range call.Args {
		f, isFunc := c.value(arg, s)
		switch {
		case isFunc && own: // bound to the parameter
		case isFunc && later:
			c.invoke(f, nil, &scope{entry: s.entry, funcs: s.funcs}, arg)
		case isFunc && len(s.held) > 0:
			c.invoke(f, nil, s, arg)
		default:
			c.expression(arg, s)
		}
	}
	if tv := c.info.Types[call.Fun]; tv.IsType() || tv.IsBuiltin() {
		return
	}
	if known {
		c.invoke(callee, call.Args, s, call)
	} else if len(s.held) > 0 && !c.isParameter(call.Fun) {
		c.report(s, call, "calls the function value %s", types.ExprString(call.Fun))
	}
}

// isParameter reports whether an expression is a parameter of an unexported function: it is checked at the calls of that
// function.
func (c *checker) isParameter(e ast.Expr) bool {
	name, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	for f := range c.functions {
		for p := range f.Signature().Params().Variables() {
			if p == c.info.Uses[name] {
				return !f.Exported()
			}
		}
	}
	return false
}

// invoke checks the call of a known function.
func (c *checker) invoke(f callable, args []ast.Expr, s *scope, at ast.Node) {
	if f.literal != nil {
		c.body(f.literal.Body, scope{s.entry, s.held, f.funcs})
		return
	}
	decl := c.functions[f.decl.Origin()]
	if decl == nil {
		c.callOut(f.decl, s, at)
		return
	}
	bound := map[types.Object]callable{}
	for i, arg := range args {
		if v, ok := c.value(arg, s); ok && i < f.decl.Origin().Signature().Params().Len() {
			bound[f.decl.Origin().Signature().Params().At(i)] = v
		}
	}
	key := fmt.Sprint(s.entry, f.decl.FullName(), s.held)
	if c.visited[key] && (len(bound) == 0 || strings.Count(key, f.decl.FullName()) > 3) || len(s.held) == 0 && len(bound) == 0 {
		return // checkAll checks each function without mutexes
	}
	c.visited[key] = true
	c.body(decl.Body, scope{s.entry, s.held, bound})
}

// callOut checks a call of another package, or of an interface.
func (c *checker) callOut(f *types.Func, s *scope, at ast.Node) {
	if len(s.held) == 0 || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module) {
		return
	}
	recv := f.Signature().Recv()
	name := f.Pkg().Name() + "." + f.Name()
	if recv != nil {
		t := recv.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			name = f.Pkg().Name() + "." + named.Obj().Name()
		}
	}
	switch {
	case name == "target.Registry" || name == "reporter.Store":
		c.nest(s, name)
	case f.Pkg().Name() == "target" || f.Pkg().Name() == "observe": // pure
	default:
		c.report(s, at, "calls %s.%s", name, f.Name())
	}
}

func (c *checker) nest(s *scope, inner string) {
	for _, outer := range s.held {
		c.nested[outer+" > "+inner] = true
	}
}

func (c *checker) report(s *scope, at ast.Node, format string, args ...any) {
	text := fmt.Sprintf("%s: %s with %s held", c.fset.Position(at.Pos()), fmt.Sprintf(format, args...), strings.Join(s.held, ", "))
	if v := (violation{s.entry, text}); !slices.Contains(c.violations, v) {
		c.violations = append(c.violations, v)
	}
}

// lockOrUnlock follows the call of a mutex.
func (c *checker) lockOrUnlock(e ast.Expr, s *scope) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	mutex, ok := c.mutex(call)
	if !ok {
		return false
	}
	if strings.HasSuffix(call.Fun.(*ast.SelectorExpr).Sel.Name, "nlock") {
		s.held = slices.DeleteFunc(s.held, func(m string) bool { return m == mutex })
		return true
	}
	c.nest(s, mutex)
	s.held = append(s.held, mutex)
	return true
}

// mutex returns the name of the mutex that a call locks or unlocks: "package.Type.field".
func (c *checker) mutex(call *ast.CallExpr) (string, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, sel.Sel.Name) {
		return "", false
	}
	if f, ok := c.info.Uses[sel.Sel].(*types.Func); !ok || f.Pkg() == nil || f.Pkg().Path() != "sync" {
		return "", false
	}
	field, ok := sel.X.(*ast.SelectorExpr)
	if !ok {
		return types.ExprString(sel.X), true
	}
	t := c.info.Types[field.X].Type
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	name := types.ExprString(field.X)
	if named, ok := t.(*types.Named); ok {
		name = named.Obj().Pkg().Name() + "." + named.Obj().Name()
	}
	return name + "." + field.Sel.Name, true
}
