package server

import (
	"encoding/json"
	"iter"
)

// The functions below walk through valid JSON without copies: a map of a hostile body would take many times its size.

// members returns the members of an object: each name with its quotes, and its value. The object has to be valid.
func members(object json.RawMessage) iter.Seq2[json.RawMessage, json.RawMessage] {
	return func(yield func(name, value json.RawMessage) bool) {
		for rest := skip(object, 1); rest[0] != '}'; rest = skipComma(rest) {
			name := rest[:valueLength(rest)]
			rest = skip(rest, len(name))
			rest = skip(rest, len(":"))
			value := rest[:valueLength(rest)]
			if !yield(name, value) {
				return
			}
			rest = skip(rest, len(value))
		}
	}
}

// elements returns the elements of a list, which has to be valid.
func elements(list json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for rest := skip(list, 1); rest[0] != ']'; rest = skipComma(rest) {
			element := rest[:valueLength(rest)]
			if !yield(element) {
				return
			}
			rest = skip(rest, len(element))
		}
	}
}

// skip is the text after n bytes and the white space that follows.
func skip(text json.RawMessage, n int) json.RawMessage {
	for n < len(text) && (text[n] == ' ' || text[n] == '\n' || text[n] == '\t' || text[n] == '\r') {
		n++
	}
	return text[n:]
}

// skipComma is the text after a comma, if it begins with one.
func skipComma(text json.RawMessage) json.RawMessage {
	if text[0] == ',' {
		return skip(text, 1)
	}
	return text
}

// valueLength is the length of the value at the beginning of a valid text.
func valueLength(text json.RawMessage) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringLength(text[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // after a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// stringLength is the length of the string at the beginning of a valid text, with its quotes.
func stringLength(text json.RawMessage) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
