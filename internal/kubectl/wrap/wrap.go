// Package wrap fits texts into the width of a terminal. Widths are numbers of characters.
package wrap

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Shorten cuts a text to a width, and marks the cut. It cuts between words unless that loses half of the width.
func Shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	kept := string(runes[:width-1])
	if runes[width-1] != ' ' {
		if at := strings.LastIndexByte(kept, ' '); at >= 0 && utf8.RuneCountInString(kept[:at]) >= width/2 {
			kept = kept[:at]
		}
	}
	return strings.TrimRight(kept, " ") + "…"
}

// CutMiddle cuts a text in the middle to a width of at least 1. The start and the end of a name distinguish objects.
func CutMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	end := (width - 1) / 2
	return string(runes[:width-1-end]) + "…" + string(runes[len(runes)-end:])
}

// Lines breaks a text at its spaces into lines of at most a width, except for longer words. It does not break the text if the
// width is not positive. An empty text has no lines.
func Lines(text string, width int) []string {
	if width <= 0 && text != "" {
		return []string{text}
	}
	var lines []string
	length := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if last := len(lines) - 1; last >= 0 && length+1+n <= width {
			lines[last] += " " + word
			length += 1 + n
			continue
		}
		lines = append(lines, word)
		length = n
	}
	return lines
}

// AtMost breaks a text into at most most lines of a width, also within longer words. It marks a cut at the end.
func AtMost(text string, width, most int) []string {
	width = max(width, 1)
	var lines []string
	for _, line := range Lines(text, width) {
		for part := range slices.Chunk([]rune(line), width) {
			lines = append(lines, string(part))
		}
	}
	if len(lines) > most {
		lines = append(lines[:most-1], Shorten(strings.Join(lines[most-1:], " "), width))
	}
	return lines
}
