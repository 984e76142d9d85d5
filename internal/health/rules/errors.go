package rules

import (
	"fmt"
	"strings"
)

// Error is an error in a file of rules.
type Error struct {
	File string
	// Line and Column are the position in the file, from 1; 0 for the whole file.
	Line, Column int
	// Rule is the name of the rule, such as Certificate.cert-manager.io; empty outside a rule.
	Rule string
	// Place is the position in the rule, such as "check 2, when"; empty for the whole rule.
	Place string
	// ExprLine and ExprColumn are the position in the expression, from 1; 0 outside an expression.
	ExprLine, ExprColumn int
	Text                 string
}

// Error returns the position, from the file to the expression, and the text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Rule != "" {
		b.WriteString(": rule " + e.Rule)
	}
	if e.Place != "" {
		b.WriteString(", " + e.Place)
	}
	if e.ExprLine > 0 {
		fmt.Fprintf(&b, " (line %d, column %d of the expression)", e.ExprLine, e.ExprColumn)
	}
	return b.String() + ": " + e.Text
}

// Errors has all errors, in the order of the files.
type Errors []*Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}
