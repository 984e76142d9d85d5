package threeport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"":            "",
		"plain":       "plain",
		"a\x00b":      "a\uFFFDb",
		"a\xff\xfeb":  "a\uFFFDb",
		"日本\uFFFD":    "日本\uFFFD",
		"\x00\x00end": "\uFFFD\uFFFDend",
	} {
		if got := cleanText(in); got != want {
			t.Errorf("cleanText(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanJSON(t *testing.T) {
	for _, tc := range []struct{ reason, in, want string }{
		{"nothing to do", `{"a":"b\n\u00e9"}`, `{"a":"b\n\u00e9"}`},
		{"an escaped NUL", `{"a":"x\u0000y"}`, `{"a":"x\ufffdy"}`},
		{"an escaped NUL in a key", `{"\u0000":1}`, `{"\ufffd":1}`},
		{"an escaped backslash before the same letters", `{"a":"\\u0000"}`, `{"a":"\\u0000"}`},
		{"a NUL after an escaped backslash", `{"a":"\\\u0000"}`, `{"a":"\\\ufffd"}`},

		{"a surrogate pair", `"\ud83d\ude00"`, `"\ud83d\ude00"`},
		{"half a pair", `"\ud83d!"`, `"\ufffd!"`},
		{"the other half", `"\ude00"`, `"\ufffd"`},
		{"half a pair, then a NUL", `"\ud83d\u0000"`, `"\ufffd\ufffd"`},
		{"halves in the wrong order", `"\ude00\ud83d"`, `"\ufffd\ufffd"`},
		{"invalid UTF-8", "\"a\xffb\"", "\"a\uFFFDb\""},
		{"a bare NUL", "\"a\x00b\"", "\"a\uFFFDb\""},
		{"cut off", `"\u00`, `"\u00`},
		{"cut off after the backslash", `"\`, `"\`},
		{"empty", ``, ``},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := string(cleanJSON(json.RawMessage(tc.in))); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func FuzzCleanText(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\x00b", "a\xff\xfeb", "\uFFFD", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := cleanText(in)
		if !utf8.ValidString(out) || strings.Contains(out, "\x00") {
			t.Errorf("%q became %q", in, out)
		}
		if fine := utf8.ValidString(in) && !strings.Contains(in, "\x00"); fine && in != out {
			t.Errorf("%q needed nothing and became %q", in, out)
		}
		if cleanText(out) != out {
			t.Errorf("%q, cleaned again, becomes %q", out, cleanText(out))
		}
	})
}

func FuzzCleanJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":"\u0000"}`, `"\ud83d\ude00"`, `"\\\u0000"`, "\"\xff\"", "\"\x00\"", `{"\u0000":1,"\ufffd":[1e400,null,true]}`,
		`"\ud83d\\u0000"`, `"\\u0000"`, `"\ude00\ud83d\u0000"`, "\"\\\x00\"", "\"\xff\xfe\\ud800\"", "{\"\xff\":\"\x7f\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := cleanJSON(in)
		if !utf8.Valid(out) || bytes.IndexByte(out, 0) >= 0 {
			t.Errorf("%q became %q", in, out)
		}
		if again := cleanJSON(out); !bytes.Equal(again, out) {
			t.Errorf("%q, cleaned again, becomes %q", out, again)
		}
		if !json.Valid(in) {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
		before, after := tokens(t, in), tokens(t, out)
		if len(before) != len(after) {
			t.Fatalf("%q became %q", in, out)
		}
		fine := utf8.Valid(in)
		for i := range before {
			if text, ok := before[i].(string); ok {
				fine = fine && !strings.ContainsAny(text, "\x00"+replacement)
				before[i] = merged(cleanText(text))
				after[i] = merged(after[i].(string))
			}
			if text, ok := after[i].(string); ok && strings.Contains(text, "\x00") || before[i] != after[i] {
				t.Errorf("%q became %q", in, out)
			}
		}
		if fine && !bytes.Equal(in, out) {
			t.Errorf("%q needed nothing and became %q", in, out)
		}
	})
}

// tokens returns the values, keys and brackets of a document in their order, as package json reads them.
func tokens(t *testing.T, doc []byte) []any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	var out []any
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
		out = append(out, token)
	}
}

// merged makes one U+FFFD of several in a row. Of a run of invalid bytes package json makes one for each.
func merged(text string) string {
	for strings.Contains(text, replacement+replacement) {
		text = strings.ReplaceAll(text, replacement+replacement, replacement)
	}
	return text
}

func TestCleanTime(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	got, err := cleanTime("Timestamp", new(time.Date(2026, 1, 2, 3, 4, 5, 678901000, berlin)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil || string(text) != `"2026-01-02T02:04:05.678901Z"` {
		t.Errorf("got %s, %v", text, err)
	}
	for _, bad := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := cleanTime("Timestamp", &bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}
