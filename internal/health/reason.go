package health

import (
	"strings"
	"unicode"
)

// camelReason returns a reason in CamelCase for the text that a controller wrote as one, or the fallback if the text has
// no letters or digits.
func camelReason(text, fallback string) string {
	if text == "" {
		return fallback
	}
	if len(text) <= maxReadText && unicode.IsUpper(rune(text[0])) && strings.IndexFunc(text, isNoCamelRune) < 0 &&
		(len(text) <= 3 || strings.ToUpper(text) != text) {
		return text
	}
	if c := camelCase(text); c != "" {
		return c
	}
	return fallback
}

func isNoCamelRune(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// maxReasonWords bounds the length of a reason.
const maxReasonWords = 6

// camelCase writes the first words of a text as one word.
func camelCase(text string) string {
	if len(text) > maxReadText {
		text = text[:maxReadText]
	}
	allUpper := len(text) > 4 && text == strings.ToUpper(text)
	var b strings.Builder
	words := 0
	for part := range strings.FieldsFuncSeq(text, isNoCamelRune) {
		if allUpper || part == strings.ToUpper(part) && len(part) > 3 {
			part = strings.ToLower(part)
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		if words++; words == maxReasonWords {
			break
		}
	}
	out := b.String()
	if out != "" && unicode.IsDigit(rune(out[0])) {
		return "Code" + out
	}
	return out
}
