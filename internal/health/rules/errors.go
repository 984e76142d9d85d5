package rules

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a file of rules.
type Error struct {
	File         string
	Line, Column int    // in the file, from 1; 0 if it is about the whole file
	Rule         string // the rule's name, such as Certificate.cert-manager.io; empty outside a rule
	Place        string // where in the rule: "check 2, when"; empty if it is about all of it
	ExprLine     int    // in the expression, from 1; 0 if it is not about one
	ExprColumn   int    // from 1
	Text         string
}

// Error says where it is, from the file to the expression, and what.
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

// Errors are all that is wrong, in the order of the files.
type Errors []*Error

// Error has a line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each of them.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}
