package canonicaljson

import (
	"encoding/json"
	"errors"
	"math"
)

var (
	// ErrNUL rejects a string with a NUL character, which PostgreSQL cannot store.
	ErrNUL = errors.New("a string contains \\u0000, which cannot be stored")

	errTooLong = errors.New("the document has 2 GiB or more")
	errSyntax  = errors.New("invalid JSON")
)

// maxSinglePass is the largest document, in bytes, whose output is written while it is scanned for the first time. For
// a larger one the first scan only finds out whether keys must be sorted, so that no large output is discarded.
const maxSinglePass = 1 << 20

// Canonicalize returns the canonical form of a JSON document, as a database with a JSON type stores it. The form has no
// white space, the keys of each object sorted, and the last value of duplicate keys. Strings are written as encoding/json writes
// them. Numbers keep their digits. Text after the document is ignored. Errors quote at most one character.
//
// The function decodes no values. Besides the result it uses at most two bytes of memory per byte of the document.
func Canonicalize(raw json.RawMessage) (string, error) {
	if len(raw) > math.MaxInt32 {
		return "", errTooLong
	}
	n := &canonicalizer{raw: raw, writing: len(raw) <= maxSinglePass}
	if !n.value(0) {
		return "", syntaxError(raw)
	}
	if n.mixed > 0 || n.changed && !n.writing {
		n = n.again()
	}
	if n.nul {
		return "", ErrNUL
	}
	return n.text(), nil
}

// syntaxError returns the error of encoding/json for an invalid document.
func syntaxError(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return err
	}
	return errSyntax
}
