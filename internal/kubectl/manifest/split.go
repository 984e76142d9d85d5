package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Size limits of a document, in bytes. JSON may be a List of all Pods of a large cluster. YAML takes much more memory and
// time for the same content.
const (
	maxYAML = 64 << 20
	maxJSON = 256 << 20
)

// chunk is the text of one document.
type chunk struct {
	text  []byte
	line  int // its first line, from 1
	json  bool
	limit int // the limit that the text exceeds; 0 if it exceeds none
}

// splitter cuts an input into documents without decoding them.
type splitter struct {
	in      *bufio.Reader
	maxYAML int
	maxJSON int

	// rest is the text that putBack returned; fragment returns it again.
	rest       []byte
	startsLine bool // rest begins its line
	started    bool // something has been read
	// line is the number of the line of rest, or else of the next line.
	line    int
	midLine bool // the last fragment did not end its line
}

func newSplitter(in io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, 64<<10), maxYAML: maxYAML, maxJSON: maxJSON, line: 1}
}

// fragment returns the next line, or a part of a long line, and whether it starts the line.
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

// putBack makes fragment return a text again.
func (s *splitter) putBack(text []byte, fresh bool) {
	if len(text) > 0 {
		s.rest, s.startsLine = text, fresh
	}
}

// countLine counts a line if the text ends it.
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

// begin skips to the start of the next document and detects its format.
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

// skipLine skips the rest of the line that a text is part of.
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

// separator reports whether a line ends a document, and returns the rest of the line.
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

// readYAML reads to the next separator, or to a line that starts a JSON object. Such a line is not part of a block,
// because blocks are indented.
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

// beginsObject reports whether a line starts a JSON object. Two braces start a template.
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

// readJSON reads to the end of an object or array. If its brackets are not closed, it ends at a separator, or where only
// another object can start.
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

// putBackRest puts back the rest of the line after an object. A newline belongs to the object.
func (s *splitter) putBackRest(text []byte) {
	if len(bytes.TrimRight(text, " \t\r\n")) == 0 && bytes.HasSuffix(text, []byte("\n")) {
		s.line++
		return
	}
	s.putBack(text, false)
}

// brackets tracks the nesting of brackets in JSON.
type brackets struct {
	depth    int
	inString bool
	escaped  bool
	broken   bool // a string continues on the next line, which is invalid
	last     byte // the last byte that is neither white space nor in a string
}

// read reads a part of the text, and returns the offset behind the outermost closing bracket; -1 if it is still open.
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

// mustEnd reports whether an object cannot be part of the open brackets.
func (b *brackets) mustEnd() bool {
	return b.broken || b.last != '[' && b.last != ',' && b.last != ':'
}
