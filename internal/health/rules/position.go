package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// cursor walks through the text of a file, in a scalar.
type cursor struct {
	rest         string // the text from this position on
	line, column int
	escapes      bool // the scalar is in double quotes
}

// newCursor returns a cursor at a line and a column of a text, both from 1.
func newCursor(text string, line, column int) cursor {
	c := cursor{rest: text, line: line, column: 1}
	for range line - 1 {
		_, c.rest, _ = strings.Cut(c.rest, "\n")
	}
	c.step(column - 1)
	return c
}

// rune returns the character at the cursor; 0 at the end.
func (c *cursor) rune() rune {
	if c.rest == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(c.rest)
	return r
}

func (c *cursor) step(n int) {
	for ; n > 0 && c.rest != ""; n-- {
		r, size := utf8.DecodeRuneInString(c.rest)
		c.rest = c.rest[size:]
		if r == '\n' {
			c.line, c.column = c.line+1, 1
		} else {
			c.column++
		}
	}
}

// escaped returns the character after a backslash at the cursor; 0 if there is none.
func (c *cursor) escaped() byte {
	if len(c.rest) < 2 {
		return 0
	}
	return c.rest[1]
}

// skipSpace skips white space, including escaped white space.
func (c *cursor) skipSpace() {
	for {
		switch r := c.rune(); {
		case unicode.IsSpace(r):
			c.step(1)
		case c.escapes && r == '\\' && strings.IndexByte("ntr \t\n_NLP", c.escaped()) >= 0:
			c.step(2)
		default:
			return
		}
	}
}

// take skips a character; false if the source has another one.
func (c *cursor) take(want rune, style yaml.Style) bool {
	switch r := c.rune(); {
	case c.escapes && r == '\\':
		length := map[byte]int{'x': 4, 'u': 6, 'U': 10}[c.escaped()]
		c.step(max(length, 2))
	case r != want:
		return false
	case r == '\'' && style&yaml.SingleQuotedStyle != 0:
		c.step(2) // a single quote is doubled
	default:
		c.step(1)
	}
	return true
}

// locate returns the position in the text of a file of a position in an expression, all from 1. It skips white space, which
// YAML changes, and reads quotes. If it does not find the expression, it returns the start of the scalar.
func (x *sourceExpression) locate(text string, line, column int) (fileLine, fileColumn int) {
	c := newCursor(text, x.line, x.column)
	switch {
	case x.style&yaml.DoubleQuotedStyle != 0:
		c.escapes = true
		c.step(1)
	case x.style&yaml.SingleQuotedStyle != 0:
		c.step(1)
	case x.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		c = newCursor(text, x.line+1, 1)
	}
	atLine, atColumn := 1, 1
	for _, r := range x.text {
		if atLine > line || atLine == line && atColumn >= column {
			break
		}
		if r == '\n' {
			atLine, atColumn = atLine+1, 1
		} else {
			atColumn++
		}
		if unicode.IsSpace(r) {
			continue
		}
		if c.skipSpace(); !c.take(r, x.style) {
			return x.line, x.column
		}
	}
	if c.skipSpace(); c.rune() == 0 {
		return x.line, x.column
	}
	return c.line, c.column
}
