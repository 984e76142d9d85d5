package rules

import (
	"fmt"
	"strings"
)

// Error is an error in a file of rules.
type Error struct {
	File         string
	Line, Column int    // in the file, from 1; 0 for the whole file
	Rule         string // the name of the rule, such as Certificate.cert-manager.io; empty outside a rule
	Place        string // in the rule, such as "check 2, when"; empty for the whole rule
	ExprLine     int    // in the expression, from 1; 0 outside an expression
	ExprColumn   int    // from 1
	Text         string
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
