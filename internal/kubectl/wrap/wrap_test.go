package wrap

import (
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	tests := []struct {
		reason, text string
		width        int
		want         []string
	}{
		{reason: "an empty text has no lines", text: "", width: 10, want: nil},
		{reason: "without a width the text is one line", text: "a b  c", width: 0, want: []string{"a b  c"}},
		{reason: "a terminal narrower than the field names does not wrap", text: "a b", width: -3, want: []string{"a b"}},
		{reason: "lines break at spaces", text: "one two three", width: 7, want: []string{"one two", "three"}},
		{reason: "characters count, not bytes", text: "ü ← ü ü", width: 5, want: []string{"ü ← ü", "ü"}},
		{reason: "a longer word has a line of its own", text: "a abcdefgh b", width: 4, want: []string{"a", "abcdefgh", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := Lines(tt.text, tt.width); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAtMost(t *testing.T) {
	tests := []struct {
		reason, text string
		width, most  int
		want         []string
	}{
		{reason: "an empty text has no lines", width: 5, most: 3},
		{reason: "a text that fits is not marked", text: "one two three", width: 7, most: 2, want: []string{"one two", "three"}},
		{reason: "a longer word is broken", text: "a abcdefgh b", width: 4, most: 4, want: []string{"a", "abcd", "efgh", "b"}},
		{reason: "the end is cut", text: "one two three four", width: 5, most: 2, want: []string{"one", "two…"}},
		{reason: "a width of 0 is one character", text: "abc", width: 0, most: 2, want: []string{"a", "…"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := AtMost(tt.text, tt.width, tt.most); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	tests := []struct {
		reason, text string
		width        int
		want         string
	}{
		{reason: "a text that fits", text: "one two", width: 7, want: "one two"},
		{reason: "the cut is between words", text: "it crashed repeatedly; it runs", width: 27, want: "it crashed repeatedly; it…"},
		{reason: "a word that ends at the width is kept", text: "one two three", width: 8, want: "one two…"},
		{reason: "a long word is cut", text: "image registry.example.com/shop/app", width: 20, want: "image registry.exam…"},
		{reason: "characters count, not bytes", text: "üü üü üü", width: 6, want: "üü üü…"},
		{reason: "no width", text: "one", width: 0, want: ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := Shorten(tt.text, tt.width); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCutMiddle(t *testing.T) {
	const name = "Pod web-7d8f9c-x2x9k"
	for _, tt := range []struct {
		width int
		want  string
	}{
		{len(name), name},
		{15, "Pod web…c-x2x9k"},
		{14, "Pod web…-x2x9k"},
		{2, "P…"},
		{1, "…"},
	} {
		if got := CutMiddle(name, tt.width); got != tt.want {
			t.Errorf("width %d: got %q, want %q", tt.width, got, tt.want)
		}
	}
}
