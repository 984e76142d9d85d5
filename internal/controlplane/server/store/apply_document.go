package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// ErrNUL is a NUL in a text, which PostgreSQL cannot keep.
var ErrNUL = errors.New("a string contains \\u0000, which cannot be stored")

// Normalise is a JSON document as it is kept: the keys of every object sorted and without white space, as a database
// with a JSON type has it. Numbers keep their digits. Its errors quote nothing but a character.
func Normalise(raw json.RawMessage) (string, error) {
	if doc, ok := quickNormal(raw); ok {
		return doc, nil
	}
	return slowNormal(raw)
}

func slowNormal(raw json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", err
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	doc := strings.TrimSuffix(buf.String(), "\n")
	if hasNUL(doc) {
		return "", ErrNUL
	}
	return doc, nil
}

// hasNUL looks for the escape of NUL in normalised JSON, which is not the end of an escaped backslash before the letters
// u0000.
func hasNUL(doc string) bool {
	for {
		i := strings.IndexByte(doc, '\\')
		if i < 0 {
			return false
		}
		doc = doc[i:]
		if strings.HasPrefix(doc, `\u0000`) {
			return true
		}
		doc = doc[2:] // valid JSON: a backslash is never last
	}
}
