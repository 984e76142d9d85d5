package server

import (
	"encoding/json"
	"errors"
	"io"
)

const (
	// maxValue bounds a value that is decoded as a whole, in bytes of JSON: an object of the cluster, an Event, a status, one
	// object of a tree. Kubernetes accepts objects of 1.5 MiB. It is a little less than a power of two, because the JSON
	// decoder's buffer doubles.
	maxValue = 8<<20 - 1<<10

	// maxSpace bounds the white space in a row that reaches the JSON decoder, in bytes.
	maxSpace = 1 << 10
)

// errValueTooLarge is the error of a value larger than maxValue.
var errValueTooLarge = errors.New("a value is too large")

// setText reads the text of a report set for the JSON decoder. The decoder would keep all white space before a token, scan
// it again with every read, and keep a value of any size. So setText shortens white space, fills the buffer of every read,
// and fails once the decoder holds more than one value may have.
type setText struct {
	r        io.Reader
	json     *json.Decoder // reads from this
	maxValue int64         // bytes
	passed   int64         // bytes passed to the decoder

	quoted, escaped bool // within a string, and after its backslash
	space           int  // bytes in a row
	shortened       bool // some white space was left out
}

// newSetText reads a report set's text from r.
func newSetText(r io.Reader) *setText {
	text := &setText{r: r, maxValue: maxValue}
	text.json = json.NewDecoder(text)
	return text
}

func (t *setText) Read(p []byte) (n int, err error) {
	free := t.maxValue - (t.passed - t.json.InputOffset())
	if free <= 0 {
		return 0, errValueTooLarge
	}
	p = p[:min(int64(len(p)), free)]
	for n < len(p) && err == nil {
		var read int
		read, err = t.r.Read(p[n:])
		n += t.shorten(p[n : n+read])
	}
	t.passed += int64(n)
	return n, err
}

// shorten removes white space beyond maxSpace from a piece of the text, in place, and returns the new length.
func (t *setText) shorten(p []byte) int {
	kept := p[:0]
	for _, c := range p {
		if t.isSpace(c) {
			if t.space++; t.space > maxSpace {
				t.shortened = true
				continue
			}
		} else {
			t.space = 0
		}
		kept = append(kept, c)
	}
	return len(kept)
}

// isSpace reports whether the next byte is white space outside a string.
func (t *setText) isSpace(c byte) bool {
	switch {
	case t.escaped:
		t.escaped = false
	case c == '"':
		t.quoted = !t.quoted
	case t.quoted:
		t.escaped = c == '\\'
	default:
		return c == ' ' || c == '\n' || c == '\t' || c == '\r'
	}
	return false
}
