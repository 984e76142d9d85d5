package server

import (
	"encoding/json"
	"errors"
	"io"
)

const (
	// maxValue is how many bytes of JSON one value may have that is read as a whole: an object of the cluster, an Event, a
	// status, one object of a tree. Kubernetes takes objects of 1.5 MiB. It is a little less than a power of two, as is the
	// JSON decoder's buffer, which doubles.
	maxValue = 8<<20 - 1<<10

	// mostBlanks is how much white space in a row reaches the JSON decoder, in bytes.
	mostBlanks = 1 << 10
)

// errValueTooLarge is a value that is larger than is accepted.
var errValueTooLarge = errors.New("a value is too large")

// setText is the text of a report set on its way to the JSON decoder, which would keep all white space before a token, scan
// it again with every read, and keep a value of any size. So a read fills what it is given, there is never much white space
// in a row, and the decoder has no more at a time than a value may have.
type setText struct {
	r     io.Reader
	json  *json.Decoder // that reads it
	most  int64         // bytes of a value
	given int64         // bytes, to the decoder

	quoted, escaped bool // within a string, and behind its backslash
	blanks          int  // in a row
	shortened       bool // there was more white space than was given
}

// decoderOf makes a JSON decoder of a report set's text.
func decoderOf(r io.Reader) *setText {
	text := &setText{r: r, most: maxValue}
	text.json = json.NewDecoder(text)
	return text
}

func (t *setText) Read(p []byte) (n int, err error) {
	room := t.most - (t.given - t.json.InputOffset())
	if room <= 0 {
		return 0, errValueTooLarge
	}
	p = p[:min(int64(len(p)), room)]
	for n < len(p) && err == nil {
		var read int
		read, err = t.r.Read(p[n:])
		n += t.shorten(p[n : n+read])
	}
	t.given += int64(n)
	return n, err
}

// shorten takes white space out of a piece of the text, in place, and returns the length of what is left.
func (t *setText) shorten(p []byte) int {
	left := p[:0]
	for _, c := range p {
		if t.blank(c) {
			if t.blanks++; t.blanks > mostBlanks {
				t.shortened = true
				continue
			}
		} else {
			t.blanks = 0
		}
		left = append(left, c)
	}
	return len(left)
}

// blank tells white space from all else, and from blanks within a string.
func (t *setText) blank(c byte) bool {
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

// untilGone ends a reader with the error of a context, such as that of a client that has gone.
type untilGone struct {
	r   io.Reader
	err func() error // the context's
}

func (u untilGone) Read(p []byte) (int, error) {
	if err := u.err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
