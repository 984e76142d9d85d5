package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// How large a document may be, in bytes. A document in JSON may be a List of all Pods of a large cluster; YAML takes
// much more memory and time for the same.
const (
	maxYAML = 64 << 20
	maxJSON = 256 << 20
)

// chunk is the text of one document.
type chunk struct {
	text  []byte
	line  int // where it begins, from 1
	json  bool
	limit int // what it is larger than; 0 if it is not
}

// splitter cuts an input into documents without decoding them.
type splitter struct {
	in      *bufio.Reader
	maxYAML int
	maxJSON int

	rest       []byte // of a line, put back
	startsLine bool   // rest begins its line
	started    bool   // something has been read
	line       int    // the number of the line that is read next, or that rest is of
	midLine    bool   // the last fragment did not end its line
}

func newSplitter(in io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, 64<<10), maxYAML: maxYAML, maxJSON: maxJSON, line: 1}
}

// fragment returns the next line, or a piece of it if it is long, and whether it begins the line.
func (s *splitter) fragment() (text []byte, fresh bool, err error) {
	if s.rest != nil {
		text, fresh = s.rest, s.startsLine
		s.rest = nil
		return text, fresh, nil
	}
	if !s.started {
		s.started = true
		if bom, err := s.in.Peek(3); err == nil && string(bom) == "\ufeff" {
			_, _ = s.in.Discard(3)
		}
	}
	text, err = s.in.ReadSlice('\n')
	fresh = !s.midLine
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	if errors.Is(err, io.EOF) && len(text) > 0 {
		err = nil
	}
	s.midLine = len(text) > 0 && text[len(text)-1] != '\n'
	return text, fresh, err
}

// putBack makes a text that was read come again.
func (s *splitter) putBack(text []byte, fresh bool) {
	if len(text) > 0 {
		s.rest, s.startsLine = text, fresh
	}
}

// countLine counts the line that a text ends.
func (s *splitter) countLine(text []byte) {
	if bytes.HasSuffix(text, []byte("\n")) {
		s.line++
	}
}

// next returns the next document; io.EOF if there is none.
func (s *splitter) next() (chunk, error) {
	c, err := s.begin()
	if err != nil {
		return chunk{}, err
	}
	if c.json {
		return s.readJSON(c)
	}
	return s.readYAML(c)
}

// begin passes over what stands between documents, to the first text of one, and tells how it is written.
func (s *splitter) begin() (chunk, error) {
	for {
		text, fresh, err := s.fragment()
		if err != nil {
			return chunk{}, err
		}
		if fresh {
			if rest, ok := separator(text); ok {
				s.putBack(rest, false)
				if len(rest) == 0 {
					s.countLine(text)
				}
				continue
			}
		}
		content := bytes.TrimLeft(text, " \t\r\n")
		comment := len(content) > 0 && (content[0] == '#' || fresh && content[0] == '%')
		if comment {
			if err := s.skipLine(text); err != nil {
				return chunk{}, err
			}
			continue
		}
		if len(content) == 0 {
			s.countLine(text)
			continue
		}
		c := chunk{line: s.line, json: content[0] == '{' || content[0] == '['}
		if c.json {
			text, fresh = content, false
		}
		s.putBack(text, fresh)
		return c, nil
	}
}

// skipLine passes over the rest of a line of which text is a piece.
func (s *splitter) skipLine(text []byte) error {
	for !bytes.HasSuffix(text, []byte("\n")) {
		var fresh bool
		var err error
		if text, fresh, err = s.fragment(); err != nil {
			return err
		}
		if fresh {
			s.putBack(text, true)
			return nil
		}
	}
	s.line++
	return nil
}

// separator reports whether a line ends a document, and returns what follows in the line.
func separator(line []byte) ([]byte, bool) {
	for _, mark := range []string{"---", "..."} {
		rest, ok := bytes.CutPrefix(line, []byte(mark))
		if ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0) {
			if len(bytes.TrimSpace(rest)) == 0 {
				rest = nil
			}
			return rest, true
		}
	}
	return nil, false
}

// readYAML reads to the next separator, or to a line that begins an object in JSON: content of a block is indented.
func (s *splitter) readYAML(c chunk) (chunk, error) {
	for first := true; ; first = false {
		text, fresh, err := s.fragment()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return chunk{}, err
		}
		if fresh && !first {
			if _, ok := separator(text); ok || beginsObject(text) {
				s.putBack(text, true)
				return c, nil
			}
		}
		s.countLine(text)
		c.add(text, s.maxYAML)
	}
}

// beginsObject reports whether a line is the first one of an object in JSON. Two braces are a template's.
func beginsObject(line []byte) bool {
	return len(line) > 1 && line[0] == '{' && line[1] != '{'
}

func (c *chunk) add(text []byte, limit int) {
	if c.limit == 0 && len(c.text)+len(text) > limit {
		c.text, c.limit = nil, limit
	}
	if c.limit == 0 {
		c.text = append(c.text, text...)
	}
}

// readJSON reads to the end of an object or array. If its brackets are not closed it ends with a separator, or where
// only another object can begin.
func (s *splitter) readJSON(c chunk) (chunk, error) {
	var b brackets
	for {
		text, fresh, err := s.fragment()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return chunk{}, err
		}
		if fresh {
			if _, ok := separator(text); ok || beginsObject(text) && b.mustEnd() {
				s.putBack(text, true)
				return c, nil
			}
		}
		end := b.read(text)
		if end < 0 {
			s.countLine(text)
			c.add(text, s.maxJSON)
			continue
		}
		c.add(text[:end], s.maxJSON)
		s.putBackRest(text[end:])
		return c, nil
	}
}

// putBackRest puts back what follows an object in its line. A newline goes with the object.
func (s *splitter) putBackRest(text []byte) {
	if len(bytes.TrimRight(text, " \t\r\n")) == 0 && bytes.HasSuffix(text, []byte("\n")) {
		s.line++
		return
	}
	s.putBack(text, false)
}

// brackets follows the nesting of a text in JSON.
type brackets struct {
	depth    int
	inString bool
	escaped  bool
	broken   bool // a string goes on in the next line, which none does
	last     byte // the last one that is not a space, and not in a string
}

// read follows a piece of text, and returns where the outermost bracket is closed; -1 if it is not.
func (b *brackets) read(text []byte) int {
	for i, c := range text {
		switch {
		case b.inString:
			b.readString(c)
		case c == '"':
			b.inString, b.last = true, c
		case c == '{' || c == '[':
			b.depth++
			b.last = c
		case c == '}' || c == ']':
			b.depth--
			b.last = c
			if b.depth <= 0 {
				return i + 1
			}
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			b.last = c
		}
	}
	return -1
}

func (b *brackets) readString(c byte) {
	switch {
	case c == '\n':
		b.inString, b.escaped, b.broken = false, false, true
	case b.escaped:
		b.escaped = false
	case c == '\\':
		b.escaped = true
	case c == '"':
		b.inString = false
	}
}

// mustEnd reports whether an object cannot be a part of what is open.
func (b *brackets) mustEnd() bool {
	return b.broken || b.last != '[' && b.last != ',' && b.last != ':'
}
