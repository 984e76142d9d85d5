package canonicaljson

import (
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxCharacter is the maximal length of an encoded character, in bytes.
	maxCharacter = len(`\u2028`)
	lenUnicode   = len(`\u0000`)
)

// appendCharacter appends a character of a string as encoding/json encodes it without HTML escapes.
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

// characterAt decodes the character at the beginning of text, and returns its encoded length. The rune is -1 at the end
// of the string.
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

// unescape decodes the escape sequence at the beginning of text and returns its length; 0 if it is invalid.
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

// unicodeEscape returns the code unit of a \uXXXX sequence, or -1 for anything else.
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
