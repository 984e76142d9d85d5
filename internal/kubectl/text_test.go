package kubectl

import (
	"slices"
	"testing"
)

func TestWrap(t *testing.T) {
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
			if got := wrap(tt.text, tt.width); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
