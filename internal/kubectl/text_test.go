package kubectl

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
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

func TestWrapTo(t *testing.T) {
	tests := []struct {
		reason, text string
		width, most  int
		want         []string
	}{
		{reason: "an empty text has no lines", width: 5, most: 3},
		{reason: "a text that fits is not marked", text: "one two three", width: 7, most: 2, want: []string{"one two", "three"}},
		{reason: "a longer word is broken", text: "a abcdefgh b", width: 4, most: 4, want: []string{"a", "abcd", "efgh", "b"}},
		{reason: "the end is cut", text: "one two three four", width: 5, most: 2, want: []string{"one", "two …"}},
		{reason: "a width of 0 is one character", text: "abc", width: 0, most: 2, want: []string{"a", "…"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := wrapTo(tt.text, tt.width, tt.most); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPlural(t *testing.T) {
	for want, noun := range map[string]string{
		"2 Pods": "Pod", "2 Ingresses": "Ingress", "2 NetworkPolicies": "NetworkPolicy", "2 Gateways": "Gateway", "2 Endpoints": "Endpoints",
	} {
		if got := many(2, noun); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := many(1, noun); got != "1 "+noun {
			t.Errorf("got %q, want %q", got, "1 "+noun)
		}
	}
}

func TestWriteJSONAndYAML_TerminalSequences_AreEscaped(t *testing.T) {
	for _, text := range []string{"a\x1b[2J\u009b2J\x7f\u0085é", "a\u061c\u200e\u202e\u2066b", "a\u009b\u202e" + `"\u202e`} {
		for name, write := range map[string]func(io.Writer, any) error{"JSON": writeJSON, "YAML": writeYAML} {
			var out bytes.Buffer
			if err := write(&out, map[string]string{"cause": text}); err != nil {
				t.Fatalf("%s of %q: %v", name, text, err)
			}
			for _, r := range out.String() {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
					t.Errorf("%s of %q: the output %q has the character %U", name, text, out.String(), r)
				}
			}
			var got map[string]string
			if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || got["cause"] != text {
				t.Errorf("%s of %q: the output is read as %q (%v)", name, text, got["cause"], err)
			}
		}
	}
}
