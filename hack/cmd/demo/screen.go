package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// plainWidth is the line width without a terminal.
const plainWidth = 160

// screen shows a changing table: in place on a terminal, otherwise by printing the lines that changed.
type screen struct {
	out      io.Writer
	terminal int // file descriptor; below zero if there is none
	shown    string
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, terminal: -1}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.terminal = int(file.Fd())
	}
	return s
}

// width returns the maximum width of a line.
func (s *screen) width() int {
	if s.terminal < 0 {
		return plainWidth
	}
	width, _, err := term.GetSize(s.terminal)
	if err != nil || width <= 0 {
		return plainWidth
	}
	return width
}

// show shows a table of complete lines if it has changed.
func (s *screen) show(text string) {
	if text == s.shown {
		return
	}
	if s.terminal < 0 {
		text, s.shown = changedLines(s.shown, text), text
		_, _ = io.WriteString(s.out, text)
		return
	}
	if s.shown != "" { // move up to the first line of the shown text, and erase it
		_, _ = fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", strings.Count(s.shown, "\n"))
	}
	_, _ = io.WriteString(s.out, text)
	s.shown = text
}

// finish prints the whole table at the end, if only its changes were printed.
func (s *screen) finish() {
	if s.terminal < 0 {
		_, _ = io.WriteString(s.out, "\n"+s.shown)
	}
}

// changedLines returns the rows of a table that it did not have before, with the causes below them. The width of a column is no change.
func changedLines(before, after string) string {
	known := map[string]bool{}
	for _, row := range tableRows(before) {
		known[strings.Join(strings.Fields(row), " ")] = true
	}
	var changed strings.Builder
	for _, row := range tableRows(after) {
		if !known[strings.Join(strings.Fields(row), " ")] {
			changed.WriteString(row)
		}
	}
	return changed.String()
}

// tableRows returns the rows of a table, each with the indented lines below it.
func tableRows(text string) (rows []string) {
	for line := range strings.Lines(text) {
		if last := len(rows) - 1; last >= 0 && strings.HasPrefix(line, causeIndent) {
			rows[last] += line
			continue
		}
		rows = append(rows, line)
	}
	return rows
}
