package threeport

import (
	"bytes"
	"iter"
)

// HasMoreCommas reports whether JSON has more than a number of commas outside of texts. A list of small values takes a hundred times
// its text when it is decoded.
func HasMoreCommas(text []byte, most int) bool {
	if bytes.Count(text, []byte(",")) <= most {
		return false
	}
	commas := 0
	for c := range outsideTexts(text) {
		if c == ',' {
			commas++
		}
	}
	return commas > most
}

// outsideTexts returns the bytes of JSON that are in no text.
func outsideTexts(json []byte) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		inText := false
		for i := 0; i < len(json); i++ {
			switch c := json[i]; {
			case c == '"':
				inText = !inText
			case inText && c == '\\':
				i++
			case !inText && !yield(c):
				return
			}
		}
	}
}
