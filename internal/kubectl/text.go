package kubectl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/kubectl/wrap"
)

// oneLine makes a text one line, and replaces control characters that could steer a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// none is shown for an unknown value.
const none = "-"

// ago formats the time since t as kubectl does.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return none
	}
	return duration.HumanDuration(max(now.Sub(t), 0))
}

// many counts: "1 object", "2 objects".
func many(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, plural(n, noun))
}

// plural returns the plural of a noun, unless n is 1: "Pods", "Ingresses", "NetworkPolicies", "Endpoints".
func plural(n int, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case n == 1, strings.HasSuffix(noun, "ts"):
		return noun
	case isY && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e"):
		return stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"):
		return noun + "es"
	}
	return noun + "s"
}

// cell is a text of a table with its style.
type cell struct {
	text  string
	style style
}

// maxWrapped is the maximum number of lines of a wrapped cell.
const maxWrapped = 3

// minNames is the minimum width of a column of names that is narrowed.
const minNames = 24

// tableRow is a row of a table.
type tableRow struct {
	cells []cell
	// margin is before the lines below the row.
	margin string
}

// table is a table with aligned columns.
type table struct {
	rows []tableRow
	// wrapped is the column whose cells are written below their row if they do not fit; 0 for none. No text may follow it. They have up
	// to maxWrapped lines, or all that they need if whole is true.
	wrapped int
	whole   bool
}

func (t *table) add(cells ...cell) { t.addWithMargin("  ", cells...) }

// addWithMargin adds a row with a margin for the lines below it.
func (t *table) addWithMargin(margin string, cells ...cell) {
	for i := range cells {
		cells[i].text = oneLine(cells[i].text)
	}
	t.rows = append(t.rows, tableRow{cells, margin})
}

// header adds a row of titles.
func (t *table) header(titles ...string) {
	cells := make([]cell, len(titles))
	for i, title := range titles {
		cells[i] = cell{title, bold}
	}
	t.add(cells...)
}

// write writes the rows behind an indentation. Unless the width is 0, it cuts them to the width, and writes a cell of the wrapped
// column that does not fit below its row.
func (t *table) write(out io.Writer, p palette, indent string, width int) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	t.narrow(widths, width-utf8.RuneCountInString(indent))
	var text strings.Builder
	for _, r := range t.rows {
		row, below := r.cells, cell{}
		if t.doesNotFit(row, widths, width-utf8.RuneCountInString(indent)) {
			row, below = row[:t.wrapped], row[t.wrapped]
		}
		text.WriteString(indent)
		left := width - utf8.RuneCountInString(indent)
		for i, c := range row {
			pad := ""
			if i == 0 && len(row) > 1 {
				c.text = wrap.CutMiddle(c.text, widths[0])
			}
			if i < len(row)-1 && !blank(row[i+1:]) {
				pad = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2)
			}
			if width > 0 {
				c.text = wrap.Shorten(c.text, left)
				left -= utf8.RuneCountInString(c.text)
				pad = pad[:min(len(pad), left)]
				left -= len(pad)
			}
			text.WriteString(p.paint(c.style, c.text) + pad)
		}
		text.WriteByte('\n')
		margin, most := indent+r.margin, maxWrapped
		if t.whole {
			most = utf8.RuneCountInString(below.text)
		}
		for _, line := range wrap.AtMost(below.text, width-utf8.RuneCountInString(margin), most) {
			text.WriteString(margin + p.paint(below.style, line) + "\n")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// narrow reduces the width of the first column, but not below minNames, so that the columns before the wrapped one fit.
func (t *table) narrow(widths []int, width int) {
	if width <= 0 || t.wrapped == 0 {
		return
	}
	for _, w := range widths[:t.wrapped] {
		width -= w + 2
	}
	if width += 2; width < 0 { // no space follows the last column
		widths[0] = max(widths[0]+width, min(widths[0], minNames))
	}
}

// doesNotFit reports whether the cell of the wrapped column exceeds a width.
func (t *table) doesNotFit(row []cell, widths []int, width int) bool {
	if width <= 0 || t.wrapped == 0 || len(row) <= t.wrapped || row[t.wrapped].text == "" {
		return false
	}
	for _, w := range widths[:t.wrapped] {
		width -= w + 2
	}
	return utf8.RuneCountInString(row[t.wrapped].text) > width
}

func blank(cells []cell) bool {
	for _, c := range cells {
		if c.text != "" {
			return false
		}
	}
	return true
}

// writeJSON writes a value as one line. Characters that could steer a terminal are escaped.
func writeJSON(out io.Writer, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(out, escapeSteering(text.String()))
	return err
}

// escapeSteering escapes the characters of a JSON text that could steer a terminal and that the encoder leaves: DEL, the C1 control
// characters and those of bidirectional text. They occur in strings only.
func escapeSteering(text string) string {
	var escaped strings.Builder
	for _, r := range text {
		if r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.String()
}

// writeYAML writes a value as a document. Characters that could steer a terminal are escaped. [yaml.Marshal] fails because of them:
// it reads the value's JSON text.
func writeYAML(out io.Writer, value any) error {
	var text bytes.Buffer
	if err := writeJSON(&text, value); err != nil {
		return err
	}
	data, err := yaml.JSONToYAML(text.Bytes())
	if err != nil {
		return err
	}
	if bytes.ContainsFunc(data, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
		data = text.Bytes() // JSON is YAML, and has the escapes that plain scalars of YAML do not have
	}
	_, err = out.Write(append([]byte("---\n"), bytes.TrimPrefix(data, []byte("---\n"))...))
	return err
}
