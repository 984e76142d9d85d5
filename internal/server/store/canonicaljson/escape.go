package canonicaljson

import (
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxCharacter is how long a character of a JSON string is at most, as encoding/json writes it.
	maxCharacter = len(`\u2028`)
	lenUnicode   = len(`\u0000`)
)

// appendCharacter appends a character of a string as encoding/json writes it when it does not escape for HTML.
func appendCharacter(out []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	case '\u2028':
		return append(out, `\u2028`...)
	case '\u2029':
		return append(out, `\u2029`...)
	}
	if r < ' ' {
		return append(out, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
	}
	return utf8.AppendRune(out, r)
}

// characterAt is the character of a string at the beginning of a text, and how long it is there; -1 at the string's end.
func characterAt(text []byte) (r rune, length int) {
	switch text[0] {
	case '"':
		return -1, 0
	case '\\':
		return unescape(text)
	default:
		return utf8.DecodeRune(text)
	}
}

// unescape is the character of the escape at the beginning of a text, and how long that is; length is 0 if it is none.
func unescape(text []byte) (r rune, length int) {
	if len(text) < 2 {
		return -1, 0
	}
	switch text[1] {
	case '"', '\\', '/':
		return rune(text[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r = unicodeEscape(text)
	switch {
	case r < 0:
		return -1, 0
	case !utf16.IsSurrogate(r):
		return r, lenUnicode
	}
	if pair := utf16.DecodeRune(r, unicodeEscape(text[lenUnicode:])); pair != unicode.ReplacementChar {
		return pair, 2 * lenUnicode
	}
	return unicode.ReplacementChar, lenUnicode
}

// unicodeEscape is the number of an escape of four hexadecimal digits, -1 for anything else.
func unicodeEscape(text []byte) rune {
	if len(text) < lenUnicode || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:lenUnicode]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
