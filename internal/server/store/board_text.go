package store

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// storable tells whether a database takes the texts: PostgreSQL takes UTF-8 only, and no NUL. No row has any other, so that
// nothing is found by one.
func storable(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0
	})
}

// likePattern is a pattern of LIKE … ESCAPE '\' for a text anywhere, in lower case.
func likePattern(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(lower(text)) + "%"
}

// lower makes small letters of those of ASCII only, as SQLite does: both databases and the feed find the same.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// like is the operator that finds a pattern in letters of either case. SQLite folds those of ASCII, PostgreSQL all that
// its locale knows.
func (d dialect) like() string {
	if d == sqliteDialect {
		return "LIKE"
	}
	return "ILIKE"
}
