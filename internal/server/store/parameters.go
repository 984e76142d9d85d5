package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FieldError names a parameter or field with an invalid value, and the accepted values. It quotes no value, which may be secret.
type FieldError struct {
	Field string
	// Accepted completes the sentence "must be …".
	Accepted string
}

func (e *FieldError) Error() string { return e.Field + ": must be " + e.Accepted }

// ErrCursor rejects a cursor that this list did not return, or returned with another sort. It is also a [FieldError].
var ErrCursor error = &FieldError{"cursor", "the next of the same list with the same sort"}

// Page sizes.
const (
	DefaultSize = 100
	MaxSize     = 1000
)

// maxParameter limits a parameter, in bytes.
const maxParameter = 256

// pageSize validates a requested size and applies the default.
func pageSize(given int) (int, error) {
	switch {
	case given == 0:
		return DefaultSize, nil
	case given < 0 || given > MaxSize:
		return 0, &FieldError{"size", "a number from 1 to 1000; 100 if it is left out"}
	default:
		return given, nil
	}
}

// checkText rejects text that no row can contain.
func checkText(parameter, given string) error {
	if len(given) > maxParameter || !utf8.ValidString(given) || strings.ContainsFunc(given, unicode.IsControl) {
		return &FieldError{parameter, "UTF-8 of at most 256 bytes without control characters"}
	}
	return nil
}

// maxSearch limits a text to search for, in characters: a search may take the product of its length and that of the texts.
const maxSearch = 64

// checkSearch rejects text that is too long to search for, or that no row can contain.
func checkSearch(given string) error {
	if utf8.RuneCountInString(given) > maxSearch || checkText("text", given) != nil {
		return &FieldError{"text", "UTF-8 of at most 64 characters without control characters"}
	}
	return nil
}

// checkOneOf rejects a value that is not in words; an empty value is accepted.
func checkOneOf(parameter, given string, words []string) error {
	if given == "" || slices.Contains(words, given) {
		return nil
	}
	return &FieldError{parameter, oneOf(words)}
}

// oneOf completes "must be …".
func oneOf(words []string) string { return "one of " + strings.Join(words, ", ") }

// maxCursor limits a cursor, in bytes. The longest cursor has a cluster's name and UID and the prefix of a workload's
// name.
const maxCursor = 4096

// cursorEncoding is strict, so that each position has exactly one cursor.
var cursorEncoding = base64.RawURLEncoding.Strict()

// encodeCursor encodes the key of the last row of a page as an opaque cursor.
func encodeCursor(key any) (string, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	return cursorEncoding.EncodeToString(text), nil
}

// decodeCursor decodes a cursor; it returns [ErrCursor] if that is malformed. The fields are untrusted: use them only
// as query arguments.
func decodeCursor[K any](cursor string) (K, error) {
	var key K
	if len(cursor) > maxCursor {
		return key, ErrCursor
	}
	text, err := cursorEncoding.DecodeString(cursor)
	if err != nil {
		return key, ErrCursor
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&key); err != nil {
		return key, ErrCursor
	}
	if _, err := decoder.Token(); err != io.EOF {
		return key, ErrCursor
	}
	return key, nil
}

// storable reports whether a database can store the texts: PostgreSQL accepts only UTF-8 without NUL. No row has other
// text, so a search for it finds nothing.
func storable(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0
	})
}

// likePattern is a pattern for LIKE … ESCAPE '\' that finds text anywhere, in lower case.
func likePattern(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(lowerASCII(text)) + "%"
}

// maxSearched limits the part of a text in which a search looks, in characters.
const maxSearched = 4096

// contains is the condition that a column with a text has another one, given by a placeholder in lower case. It looks at the
// first maxSearched characters. LIKE is ten times as slow for a text that nearly matches everywhere. With collation "C",
// PostgreSQL changes ASCII letters only; translate is a hundred times as slow.
func (d dialect) contains(column string) string {
	start := fmt.Sprintf("substr(%s, 1, %d)", column, maxSearched)
	found := "strpos(lower(" + start + ` COLLATE "C"), ?) > 0`
	if d == sqliteDialect {
		found = "instr(lower(" + start + "), ?) > 0"
	}
	return fmt.Sprintf("CASE WHEN octet_length(%s) > %d THEN FALSE ELSE %s END", column, maxLoadedBytes, found)
}

// lowerASCII lowers ASCII letters only, as SQLite does, so that both databases and the feed match the same rows.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// TooLong is the error of a value with more than MaxBytes.
func (f Field) TooLong() error {
	of := "a text"
	if f.Kind == Document {
		of = "JSON"
	}
	return &FieldError{f.Name, of + " of at most " + strconv.Itoa(f.MaxBytes) + " bytes"}
}

// checkValues returns a [FieldError] for a value that cannot be stored.
func (r *Resource) checkValues(values []any) error {
	for i, f := range r.Fields {
		text, _ := values[i].(string)
		switch {
		case !storable(text):
			return &FieldError{f.Name, "UTF-8 without NUL"}
		case f.MaxBytes > 0 && len(text) > f.MaxBytes:
			return f.TooLong()
		}
	}
	return nil
}
