package controlplane

import (
	"encoding/json"
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

func FuzzCleanJSON(f *testing.F) {
	for _, seed := range []string{`{"a":"\u0000"}`, `"\ud83d\ude00"`, `"\\\u0000"`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := cleanJSON(in)
		if json.Valid(in) != json.Valid(out) {
			t.Errorf("%q became %q", in, out)
		}
		var before, after any
		if json.Unmarshal(in, &before) != nil || json.Unmarshal(out, &after) != nil {
			return
		}
		// A run of invalid bytes becomes one U+FFFD here, and many in a parser.
		if text, ok := after.(string); ok && utf8.Valid(in) && text != cleanText(before.(string)) {
			t.Errorf("%q became %q", in, out)
		}
	})
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
