package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParameterError says which parameter of a query is wrong, and what is accepted. It quotes no value.
type ParameterError struct {
	Parameter string
	Accepted  string
}

func (e *ParameterError) Error() string { return e.Parameter + ": accepted is " + e.Accepted }

// ErrCursor is a cursor that this list did not give, or that it gave under another sort. It is a [ParameterError] too.
var ErrCursor error = &ParameterError{"cursor", "what the same list with the same sort answered as next"}

// The sizes of a page.
const (
	DefaultSize = 100
	MaxSize     = 1000
)

// maxParameter bounds a parameter, in bytes.
const maxParameter = 256

// pageSize is the size to use for the one that was given.
func pageSize(given int) (int, error) {
	switch {
	case given == 0:
		return DefaultSize, nil
	case given < 0 || given > MaxSize:
		return 0, &ParameterError{"size", "a number from 1 to 1000; 100 if it is left out"}
	default:
		return given, nil
	}
}

// checkText refuses what no row can hold, or no database takes.
func checkText(parameter, given string) error {
	if len(given) > maxParameter || !utf8.ValidString(given) || strings.ContainsFunc(given, unicode.IsControl) {
		return &ParameterError{parameter, "UTF-8 of at most 256 bytes without control characters"}
	}
	return nil
}

// checkWord refuses what is not one of the words; empty stands for any.
func checkWord(parameter, given string, words []string) error {
	if given == "" || slices.Contains(words, given) {
		return nil
	}
	return &ParameterError{parameter, joined(words)}
}

func joined(words []string) string { return strings.Join(words, ", ") }
