package kubectl

import (
	"bytes"
	"io"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

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
