package luascript

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// Names of the local variables that hold the functions of [rewrite]. A script cannot name them, because they are no identifiers.
const (
	concatName = "(concat)"
	lengthName = "(length)"
	tableName  = "(table)"
)

const (
	// maxFields bounds a table constructor, which allocates before it runs.
	maxFields = 256
	// maxOperands bounds the arguments of one call for a chain of concatenations.
	maxOperands = 50
)

// rewrite replaces the expressions that allocate by calls of functions that count, and # by a function for tables without an
// array part. It returns the line of the first expression that is too large, and an error.
func rewrite(chunk []ast.Stmt) (_ []ast.Stmt, line int, err error) {
	var r rewriter
	r.walk(reflect.ValueOf(chunk))
	names := &ast.LocalAssignStmt{
		Names: []string{concatName, lengthName, tableName},
		Exprs: []ast.Expr{&ast.Comma3Expr{}}, // the arguments of the chunk
	}
	names.SetLine(1)
	names.SetLastLine(1)
	return append([]ast.Stmt{names}, chunk...), r.line, r.err
}

type rewriter struct {
	line int
	err  error
}

var expression = reflect.TypeFor[ast.Expr]()

// walk replaces expressions, the innermost first.
func (r *rewriter) walk(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // other kinds have no expressions
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		r.walk(v.Elem())
		if v.Type() == expression {
			v.Set(reflect.ValueOf(r.replace(v.Interface().(ast.Expr)))) //nolint:forcetypeassert // by its type
		}
	case reflect.Pointer:
		if !v.IsNil() {
			r.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.walk(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			r.walk(field)
		}
	}
}

func (r *rewriter) replace(x ast.Expr) ast.Expr {
	switch x := x.(type) {
	case *ast.StringConcatOpExpr:
		args := []ast.Expr{x.Lhs, x.Rhs}
		if rest := operands(x.Rhs); rest != nil {
			args = append(args[:1], rest...)
		}
		return call(x, concatName, args)
	case *ast.UnaryLenOpExpr:
		return call(x, lengthName, []ast.Expr{x.Expr})
	case *ast.TableExpr:
		if len(x.Fields) > maxFields && r.err == nil {
			r.line, r.err = x.Line(), fmt.Errorf("a table has %d fields, and may have %d", len(x.Fields), maxFields)
		}
		return call(x, tableName, []ast.Expr{x})
	}
	return x
}

// operands returns the arguments of a replaced concatenation; nil for another expression, or if there are too many.
func operands(x ast.Expr) []ast.Expr {
	c, ok := x.(*ast.FuncCallExpr)
	if !ok || len(c.Args) >= maxOperands {
		return nil
	}
	if f, ok := c.Func.(*ast.IdentExpr); !ok || f.Value != concatName {
		return nil
	}
	return c.Args
}

// call returns a call that has the position of the replaced expression and one result.
func call(at ast.Expr, name string, args []ast.Expr) ast.Expr {
	f := &ast.IdentExpr{Value: name}
	c := &ast.FuncCallExpr{Func: f, Args: args, AdjustRet: true}
	for _, x := range []ast.Expr{f, c} {
		x.SetLine(at.Line())
		x.SetLastLine(max(at.Line(), at.LastLine()))
	}
	switch last := args[len(args)-1].(type) { // an operand is one value
	case *ast.FuncCallExpr:
		last.AdjustRet = true
	case *ast.Comma3Expr:
		last.AdjustRet = true
	}
	return c
}
