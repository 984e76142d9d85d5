package threeport

import "bytes"

// HasMoreCommas reports whether JSON has more than a number of commas outside of texts. A list of small values takes a hundred times
// its text when it is decoded.
func HasMoreCommas(text []byte, most int) bool {
	if bytes.Count(text, []byte(",")) <= most {
		return false
	}
	commas, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ',':
			commas++
		}
	}
	return commas > most
}
