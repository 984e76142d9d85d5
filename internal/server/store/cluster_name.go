package store

import (
	"strings"
	"unicode"
)

// cleanName is a cluster's name without control and format characters, and with single spaces between words. Otherwise two
// different names could look the same.
func cleanName(name string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, name)
	return strings.Join(strings.Fields(visible), " ")
}

// isASCII reports whether a text has ASCII characters only.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}
