package canonicaljson

import (
	"encoding/json"
	"errors"
	"math"
)

var (
	// ErrNUL is a NUL in a text, which PostgreSQL cannot keep.
	ErrNUL = errors.New("a string contains \\u0000, which cannot be stored")

	errTooLong = errors.New("a document of 2 GiB or more")
	errNoJSON  = errors.New("it is not JSON")
)

// maxAtOnce is how long a document may be, in bytes, to be written while it is read for the first time. Of a longer one it is
// found out first whether its keys are in order: until then nothing is written that would be in vain.
const maxAtOnce = 1 << 20

// Canonicalize is a JSON document as it is kept: the keys of every object sorted, the last of equal ones, and without white
// space, as a database with a JSON type has it. Strings are written as encoding/json does, numbers keep their digits. What
// follows the document is passed over. Its errors quote nothing but a character.
//
// No value is built up: beside what it returns it takes at most two bytes of memory for each of the document.
func Canonicalize(raw json.RawMessage) (string, error) {
	if len(raw) > math.MaxInt32 {
		return "", errTooLong
	}
	n := &canonicalizer{raw: raw, writing: len(raw) <= maxAtOnce}
	if !n.value(0) {
		return "", noJSON(raw)
	}
	if n.mixed > 0 || n.changed && !n.writing {
		n = n.again()
	}
	if n.nul {
		return "", ErrNUL
	}
	return n.text(), nil
}

// noJSON is what encoding/json finds wrong with a document.
func noJSON(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return err
	}
	return errNoJSON
}
