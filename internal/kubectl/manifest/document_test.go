package manifest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// outline returns one line for each document.
func outline(t *testing.T, in io.Reader) []string {
	t.Helper()
	var out []string
	for d := range Documents(t.Context(), "in", in) {
		line := strings.TrimPrefix(d.Place(), "in: ")
		if d.Object != nil {
			name := "?"
			if meta, ok := d.Object["metadata"].(map[string]any); ok {
				name = fmt.Sprint(meta["name"])
			}
			line += fmt.Sprintf(": %v %v", d.Object["kind"], name)
		}
		if d.Err != nil {
			line += ": " + d.Err.Error()
		}
		out = append(out, line)
	}
	return out
}

const (
	yamlA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	yamlB = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
	jsonC = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
	jsonD = "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"ConfigMap\",\n  \"metadata\": {\n    \"name\": \"d\"\n  }\n}"
)

func TestDocuments(t *testing.T) {
	for _, tc := range []struct {
		reason string
		in     string
		want   []string
	}{
		{reason: "an empty input"},
		{reason: "comments and separators only", in: "# a\n---\n---\n\n# b\n...\n"},
		{reason: "one object in YAML", in: yamlA, want: []string{"document 1 (line 1): ConfigMap a"}},
		{reason: "no newline at the end", in: strings.TrimSuffix(yamlA, "\n"), want: []string{"document 1 (line 1): ConfigMap a"}},
		{reason: "documents, some of them empty", in: "---\n" + yamlA + "---\n# none\n---\n" + yamlB, want: []string{
			"document 1 (line 2): ConfigMap a", "document 2 (line 8): ConfigMap b",
		}},
		{reason: "a separator with a comment, a directive, a mark of the end", in: "%YAML 1.1\n--- # one\n" + yamlA + "...\n--- \n" + yamlB, want: []string{
			"document 1 (line 3): ConfigMap a", "document 2 (line 8): ConfigMap b",
		}},
		{reason: "content behind the separator", in: "--- " + jsonC + "\n--- {apiVersion: v1, kind: Secret}\n", want: []string{
			"document 1 (line 1): ConfigMap c", "document 2 (line 2): Secret ?",
		}},
		{reason: "lines as Windows ends them, and a byte order mark", in: "\ufeff" + strings.ReplaceAll(yamlA+"---\n"+yamlB, "\n", "\r\n"), want: []string{
			"document 1 (line 1): ConfigMap a", "document 2 (line 5): ConfigMap b",
		}},
		{reason: "a separator inside a block is none", in: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    {\n", want: []string{
			"document 1 (line 1): ConfigMap a",
		}},
		{reason: "JSON lines", in: jsonC + "\n" + jsonC + "\n\n" + jsonC, want: []string{
			"document 1 (line 1): ConfigMap c", "document 2 (line 2): ConfigMap c", "document 3 (line 4): ConfigMap c",
		}},
		{reason: "objects in JSON, one behind the other", in: jsonD + "\n" + jsonD + jsonC + " " + jsonC, want: []string{
			"document 1 (line 1): ConfigMap d", "document 2 (line 8): ConfigMap d", "document 3 (line 14): ConfigMap c", "document 4 (line 14): ConfigMap c",
		}},
		{reason: "YAML and JSON in turn", in: yamlA + "---\n" + jsonD + "\n---\n" + yamlB + jsonC, want: []string{
			"document 1 (line 1): ConfigMap a", "document 2 (line 5): ConfigMap d", "document 3 (line 13): ConfigMap b", "document 4 (line 17): ConfigMap c",
		}},
		{reason: "flow style is YAML, and not JSON", in: "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'it\"s {'}} # so\n", want: []string{
			`document 1 (line 1): ConfigMap it"s {`,
		}},
		{reason: "an array", in: "[" + jsonC + ",\n" + jsonC + "]", want: []string{
			"document 1, item 1 (line 1): ConfigMap c", "document 1, item 2 (line 1): ConfigMap c",
		}},
		{reason: "a List", in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: x}}\n- {apiVersion: v1, kind: Pod, metadata: {name: z}}\n---\n" + yamlA, want: []string{
			"document 1, item 1 (line 1): Pod x", "document 1, item 2 (line 1): Pod z", "document 2 (line 7): ConfigMap a",
		}},
		{reason: "an empty List", in: `{"apiVersion":"v1","kind":"List","items":[]}`},
		{reason: "a List with null for items", in: `{"apiVersion":"v1","kind":"List","items":null}`},
		{reason: "items of a typed list have no kind of their own", in: `{"apiVersion":"apps/v1","kind":"DeploymentList","items":[{"metadata":{"name":"web"}}]}`, want: []string{
			"document 1, item 1 (line 1): Deployment web",
		}},
		{reason: "a list in a list", in: `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"x"}}]}]}`, want: []string{
			"document 1, item 1 (line 1): Pod x",
		}},
		{reason: "an object of a kind that ends in List is no list", in: "apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: x}\nitems: [1, 2]\n", want: []string{
			"document 1 (line 1): AllowList x",
		}},
		{reason: "an item that is no object", in: `{"apiVersion":"v1","kind":"List","items":[7,` + jsonC + `]}`, want: []string{
			"document 1, item 1 (line 1): 7 is not an object: want a mapping with apiVersion, kind and metadata",
			"document 1, item 2 (line 1): ConfigMap c",
		}},
		{reason: "text", in: "hello\n---\n42\n---\n- a\n---\n" + yamlA, want: []string{
			`document 1 (line 1): "hello" is not an object: want a mapping with apiVersion, kind and metadata`,
			"document 2 (line 3): 42 is not an object: want a mapping with apiVersion, kind and metadata",
			`document 3, item 1 (line 5): "a" is not an object: want a mapping with apiVersion, kind and metadata`,
			"document 4 (line 7): ConfigMap a",
		}},
		{reason: "without kind", in: "metadata: {name: a}\n---\nkind: \"\"\napiVersion: v1\n---\nkind: [a]\napiVersion: v1\n", want: []string{
			"document 1 (line 1): <nil> a: the object has no kind",
			"document 2 (line 3):  ?: the object has no kind",
			"document 3 (line 6): [a] ?: the kind is a list, and not a string",
		}},
		{reason: "without apiVersion", in: "kind: A\n---\nkind: A\napiVersion: 1\n---\nkind: A\napiVersion: a/b/c\n---\nkind: A\napiVersion: a/\n", want: []string{
			"document 1 (line 1): A ?: A has no apiVersion",
			"document 2 (line 3): A ?: the apiVersion of A is 1, and not a string",
			`document 3 (line 6): A ?: the apiVersion "a/b/c" of A is not VERSION or GROUP/VERSION`,
			`document 4 (line 9): A ?: the apiVersion "a/" of A is not VERSION or GROUP/VERSION`,
		}},
		{reason: "a line of garbage among JSON lines", in: jsonC + "\noops\n" + jsonC + "\n", want: []string{
			"document 1 (line 1): ConfigMap c",
			`document 2 (line 2): "oops" is not an object: want a mapping with apiVersion, kind and metadata`,
			"document 3 (line 3): ConfigMap c",
		}},
		{reason: "a JSON line that was cut off", in: jsonC + "\n" + jsonC[:20] + "\n" + jsonC + "\n" + jsonC + "\n", want: []string{
			"document 1 (line 1): ConfigMap c",
			`document 2 (line 2): not JSON: invalid character '\n' in string literal`,
			"document 3 (line 3): ConfigMap c",
			"document 4 (line 4): ConfigMap c",
		}},
		{reason: "a JSON line that was cut off where an object may follow", in: `{"a":[` + "\n" + jsonC + "\n" + jsonC + "\n", want: []string{
			"document 1 (line 1): not JSON: unexpected end of JSON input",
			"document 2 (line 2): ConfigMap c",
			"document 3 (line 3): ConfigMap c",
		}},
		{reason: "an array with its objects in lines of their own", in: "[\n" + jsonC + ",\n" + jsonC + "\n]\n" + jsonC, want: []string{
			"document 1, item 1 (line 1): ConfigMap c", "document 1, item 2 (line 1): ConfigMap c", "document 2 (line 5): ConfigMap c",
		}},
		{reason: "a template that was not filled in", in: "apiVersion: v1\nkind: ConfigMap\n{{ if .x }}\nmetadata: {name: a}\n{{ end }}\n---\n" + yamlB, want: []string{
			"document 1 (line 1): not YAML: line 4: could not find expected ':'",
			"document 2 (line 7): ConfigMap b",
		}},
		{reason: "YAML that is none", in: "a: b: c\n---\n" + yamlA + "---\n\tx\n---\na: [\n---\n" + yamlB, want: []string{
			"document 1 (line 1): not YAML: mapping values are not allowed in this context",
			"document 2 (line 3): ConfigMap a",
			"document 3 (line 7): not YAML: found character that cannot start any token",
			"document 4 (line 9): not YAML: line 9: did not find expected node content",
			"document 5 (line 11): ConfigMap b",
		}},
		{reason: "binary", in: "\x00\x01\x02\xff", want: []string{"document 1 (line 1): not YAML: control characters are not allowed"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for name, in := range map[string]io.Reader{
				"whole": strings.NewReader(tc.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.in)),
			} {
				got := outline(t, in)
				if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
					t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
				}
			}
		})
	}
}

func TestDocuments_NumbersAreExact(t *testing.T) {
	for _, in := range []string{
		"apiVersion: v1\nkind: A\nspec: {id: 9007199254740993, least: -9223372036854775808, whole: 3.0, part: 1.5, huge: 18446744073709551615, none: .nan, big: .inf, 7: seven}\n",
		`{"apiVersion":"v1","kind":"A","spec":{"id":9007199254740993,"least":-9223372036854775808,"part":1.5,"huge":18446744073709551615}}`,
	} {
		for d := range Documents(t.Context(), "in", strings.NewReader(in)) {
			spec, ok := d.Object["spec"].(map[string]any)
			if !ok {
				t.Fatalf("document %s has no spec: %v", in, d.Err)
			}
			want := map[string]any{
				"id": int64(9007199254740993), "least": int64(math.MinInt64), "part": 1.5, "huge": float64(math.MaxUint64),
			}
			if strings.HasPrefix(in, "apiVersion") {
				want["whole"], want["none"], want["big"], want["7"] = int64(3), "NaN", "+Inf", "seven"
			}
			for name, value := range want {
				if spec[name] != value {
					t.Errorf("%s: %s is %T %v, want %T %v", in, name, spec[name], spec[name], value, value)
				}
			}
		}
	}
}

func TestDocuments_WithoutManagedFields(t *testing.T) {
	for d := range Documents(t.Context(), "in", strings.NewReader("apiVersion: v1\nkind: A\nmetadata: {name: a, managedFields: [{manager: b}]}\n")) {
		if meta, ok := d.Object["metadata"].(map[string]any); !ok || len(meta) != 1 {
			t.Errorf("the metadata is %v, want only one field", d.Object["metadata"])
		}
	}
}

func TestDocuments_MissingAPIVersion_IsAFlaw(t *testing.T) {
	for d := range Documents(t.Context(), "in", strings.NewReader("kind: A\n")) {
		flaw, ok := errors.AsType[*Flaw](d.Err)
		if !ok || flaw.Reason != "NoAPIVersion" || d.Object == nil {
			t.Errorf("got %v of %v, want a flaw of an object", d.Err, d.Object)
		}
	}
}

func TestDocuments_ReadError_IsTheLastDocument(t *testing.T) {
	broken := errors.New("the disk is broken")
	var got []error
	for d := range Documents(t.Context(), "in", io.MultiReader(strings.NewReader(yamlA+"---\n"), iotest.ErrReader(broken))) {
		got = append(got, d.Err)
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], broken) {
		t.Errorf("got %v, want an object and the error", got)
	}
}

// endless is a reader that never comes to an end.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func TestDocuments_LargeDocument_IsSkipped(t *testing.T) {
	for reason, tc := range map[string]struct{ before, filler, after string }{
		"YAML":          {before: "a: |\n", filler: "  x\n", after: "---\n"},
		"a line":        {before: "a: ", filler: "xxxxxxxx", after: "\n---\n"},
		"JSON":          {before: `{"a": [`, filler: "1,2,3,4,", after: "1]}\n"},
		"not closed":    {before: "{", filler: "\"a\": 1,\n", after: "---\n"},
		"only brackets": {filler: "[", after: "\n---\n"},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newSplitter(io.MultiReader(
				strings.NewReader(tc.before), io.LimitReader(endless(tc.filler), 1<<20), strings.NewReader(tc.after), strings.NewReader(yamlA),
			))
			s.maxYAML, s.maxJSON = 1<<10, 1<<10
			c, err := s.next()
			if err != nil || c.limit != 1<<10 || len(c.text) > 1<<10 {
				t.Fatalf("got %d bytes, limit %d, %v, want no error and %d", len(c.text), c.limit, err, 1<<10)
			}
			if docs := decode(c, maxRetries); len(docs) != 1 || docs[0].Err == nil {
				t.Errorf("got %v, want an error", docs)
			}
			next, err := s.next()
			if err != nil || string(next.text) != yamlA {
				t.Errorf("the next document is %q, error %v; want a valid one", next.text, err)
			}
		})
	}
}

func TestDocuments_DeepNestingAndAliasBombs(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for reason, in := range map[string]string{
		"JSON arrays":   strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"JSON objects":  strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		"YAML":          strings.Repeat("- ", 100_000),
		"lists":         strings.Repeat(`{"kind":"List","items":[`, 1000) + strings.Repeat("]}", 1000),
		"aliases":       bomb,
		"open brackets": strings.Repeat("{\"a\":[\n", 20_000),
	} {
		t.Run(reason, func(t *testing.T) {
			failed := 0
			for d := range Documents(t.Context(), "in", strings.NewReader(in)) {
				if d.Err == nil {
					t.Errorf("%s was decoded, want an error", d.Place())
				}
				failed++
			}
			if failed == 0 {
				t.Error("no document has an error")
			}
		})
	}
}

func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		yamlA + "---\n" + yamlB, jsonC + "\n" + jsonD, "[" + jsonC + "]", `{"kind":"List","items":[` + jsonC + `,1]}`,
		"{a: [\n{b: c}\n{d", "--- |\n x\n...\n", "%YAML\n# a\n&a b: *a\n", "\ufeff\r\n", "{{ x }}\n{", "a: !!binary x\n? [b]\n: c\n", "<<: {a: b}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		last := 0
		for d := range Documents(t.Context(), "in", strings.NewReader(string(data))) {
			if d.Err == nil && d.Object == nil {
				t.Errorf("%s is neither an object nor an error", d.Place())
			}
			if d.Number < last || d.Line < 1 || d.Line > 1+strings.Count(string(data), "\n") {
				t.Errorf("%s comes after document %d, or has an invalid line", d.Place(), last)
			}
			last = d.Number
		}
	})
}
