package rules

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// source is the text of a file, for finding the positions of expressions.
type source struct {
	lines [][]rune
}

func newSource(data []byte) source {
	var s source
	for line := range strings.SplitSeq(string(data), "\n") {
		s.lines = append(s.lines, []rune(line+"\n"))
	}
	return s
}

// at returns the character at a line and a column, both from 1; 0 behind the end.
func (s source) at(line, column int) rune {
	if line < 1 || line > len(s.lines) || column < 1 || column > len(s.lines[line-1]) {
		return 0
	}
	return s.lines[line-1][column-1]
}

// cursor walks through the source of a scalar.
type cursor struct {
	source
	line, column int
	escapes      bool // the scalar is in double quotes
}

func (c *cursor) rune() rune { return c.at(c.line, c.column) }

func (c *cursor) step(n int) {
	for ; n > 0; n-- {
		if c.rune() == '\n' {
			c.line, c.column = c.line+1, 1
		} else {
			c.column++
		}
	}
}

// skipSpace skips white space, including escaped white space.
func (c *cursor) skipSpace() {
	for {
		switch r := c.rune(); {
		case unicode.IsSpace(r):
			c.step(1)
		case c.escapes && r == '\\' && strings.ContainsRune("ntr \t\n_NLP", c.at(c.line, c.column+1)):
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
		length := map[rune]int{'x': 4, 'u': 6, 'U': 10}[c.at(c.line, c.column+1)]
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

// locate returns the position in the file of a position in the value of a scalar, all from 1. It skips white space, which
// YAML changes, and reads quotes. If it does not find the text, it returns the start of the scalar.
func (s source) locate(n *yaml.Node, line, column int) (fileLine, fileColumn int) {
	c := cursor{source: s, line: n.Line, column: n.Column}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		c.escapes = true
		c.step(1)
	case n.Style&yaml.SingleQuotedStyle != 0:
		c.step(1)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		c.line, c.column = c.line+1, 1
	}
	atLine, atColumn := 1, 1
	for _, r := range n.Value {
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
		if c.skipSpace(); !c.take(r, n.Style) {
			return n.Line, n.Column
		}
	}
	if c.skipSpace(); c.rune() == 0 {
		return n.Line, n.Column
	}
	return c.line, c.column
}
