package informers

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRedactor_Read_OverwritesManifestCopies(t *testing.T) {
	const name = "kubectl.kubernetes.io/last-applied-configuration"
	longest := strings.Repeat("x", 253) + "/last-applied" + strings.Repeat("x", 50)
	for _, c := range []struct{ reason, in, want string }{
		{"nothing to hide", `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		{"a copy", `{"` + name + `":"secret","b":"c"}`, `{"` + name + `":"------","b":"c"}`},
		{"a copy of another tool", `{"kopf.zalando.org/last-handled-configuration":"secret"}`, `{"kopf.zalando.org/last-handled-configuration":"------"}`},
		{"the longest name", `{"` + longest + `":"x"}`, `{"` + longest + `":"-"}`},
		{"escapes in the copy", `{"` + name + `":"a\"b\\","b":"c"}`, `{"` + name + `":"------","b":"c"}`},
		{"white space", "{\"" + name + "\" :\n \"x\"}", "{\"" + name + "\" :\n \"-\"}"},
		{"the name as a value", `{"a":"` + name + `","b":"c"}`, `{"a":"` + name + `","b":"c"}`},
		{"the name as the last of a list", `{"a":["` + name + `"],"b":"c"}`, `{"a":["` + name + `"],"b":"c"}`},

		{"the name within another", `{"f:` + name + `":"kept"}`, `{"f:` + name + `":"kept"}`},
		{"no text behind the name", `{"` + name + `":null,"b":"c"}`, `{"` + name + `":null,"b":"c"}`},
		{"a string that ends in a backslash", `{"a\\":"b","` + name + `":"x"}`, `{"a\\":"b","` + name + `":"-"}`},
		{"a quote in a string", `{"a":"\"","` + name + `":"x"}`, `{"a":"\"","` + name + `":"-"}`},
		{"two documents", `{"` + name + `":"x"}{"` + name + `":"y"}`, `{"` + name + `":"-"}{"` + name + `":"-"}`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in))} {
				got, err := io.ReadAll(&redactor{body: io.NopCloser(r), cancel: func() {}})
				if err != nil || string(got) != c.want {
					t.Errorf("%s: %s became %s (%v), expected %s", how, c.in, got, err, c.want)
				}
			}
		})
	}
}

func FuzzRedactor_Read_KeepsJSONValid(f *testing.F) {
	f.Add("a", `b"\`)
	f.Add("kubectl.kubernetes.io/last-applied-configuration", `{"data":"\u0000"}`)
	f.Fuzz(func(t *testing.T, key, value string) {
		const name = "kapp.k14s.io/original"
		in, err := json.Marshal(map[string]any{"a": map[string]string{key: value}, "b": map[string]string{name: value}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(&redactor{body: io.NopCloser(strings.NewReader(string(in))), cancel: func() {}})
		if err != nil || len(out) != len(in) {
			t.Fatalf("%d bytes became %d: %v", len(in), len(out), err)
		}
		var before, after map[string]map[string]string
		if err := json.Unmarshal(in, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%s became %s, which is not JSON: %v", in, out, err)
		}
		if strings.Trim(after["b"][name], "-") != "" {
			t.Errorf("%s became %s: the copy shows", in, out)
		}
		for k, v := range before["a"] {
			if got := after["a"][k]; got != v && strings.Trim(got, "-") != "" {
				t.Errorf("%s became %s: %q changed", in, out, k)
			}
		}
	})
}
