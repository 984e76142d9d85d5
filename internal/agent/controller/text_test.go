package controller

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// taken is what the API server takes as a condition's reason.
var taken = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func TestWord(t *testing.T) {
	for _, c := range []struct{ reason, in, want string }{
		{"a word stays", "CrashLoopBackOff", "CrashLoopBackOff"},
		{"one that is not CamelCase stays a word", "failed", "failed"},
		{"digits and underscores within", "Http_404", "Http_404"},
		{"a sentence becomes a word", "the quota is exceeded", "theQuotaIsExceeded"},
		{"with dashes", "image-pull-failed", "imagePullFailed"},
		{"with a full stop", "Not ready.", "NotReady"},
		{"digits before the first letter go", "404 not found", "notFound"},
		{"nothing", "", "Fallback"},
		{"no letter", "12 :_, 34", "Fallback"},
		{"letters that the API server does not take", "готово", "Fallback"},
		{"some of them", "über all", "berAll"},
		{"control characters", "Re\x00ady\n", "ReAdy"},
		{"not UTF-8", "\xff\xfe", "Fallback"},
		{"a trailing colon", "Failed:", "Failed"},
		{"a long one", strings.Repeat("x", 2000), strings.Repeat("x", mostWord)},
		{"no letter for long", strings.Repeat("1", mostRead) + "x", "Fallback"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := word(c.in, "Fallback"); got != c.want {
				t.Errorf("%q became %q, expected %q", c.in, got, c.want)
			}
		})
	}
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{"", "a", "_", "1a", "a:", "ü b", "\xff", "<&>\u2028\"\\", "a\tb\x7f\u0085", "�"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if got := word(s, "Fallback"); !taken.MatchString(got) || len(got) > mostWord {
			t.Errorf("%q became the word %q", s, got)
		}
		limit = max(limit%10_000, 0)
		got := cut(s, limit)
		text, err := json.Marshal(strings.TrimSuffix(got, "…"))
		if err != nil || !utf8.ValidString(got) || len(text) > limit+len(`""`) {
			t.Errorf("of %q is left %q, which takes %d bytes: %v; expected %d at most", s, got, len(text), err, limit)
		}
		if strings.ContainsAny(got, "\x00\x07\x1b\n\r\x7f") {
			t.Errorf("%q has control characters", got)
		}
		if again := cut(got, limit+len("…")); again != got {
			t.Errorf("cut again, %q becomes %q", got, again)
		}
	})
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		reason, in string
		resources  int
		most       int
	}{
		{"a short message stays", "short", 1, 5},
		{"one resource has room", strings.Repeat("x", 1000), 1, 512 + len("…")},
		{"of many each has little", strings.Repeat("x", 1000), 2000, 100 + len("…")},
		{"of very many each has something", strings.Repeat("x", 1000), 100_000, 40 + len("…")},
		{"none", strings.Repeat("x", 1000), 0, 512 + len("…")},
		{"a cut within a character", strings.Repeat("€", 1000), 1, 512 + len("…")},
		{"what is not UTF-8", "a\xffb", 1, 10},
		{"what is not UTF-8 and long", strings.Repeat("\xff", 1000), 1, 512 + len("…")},
		{"what takes more in JSON", strings.Repeat("<", 1000), 1, 512/6 + len("…")},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := shorten(c.in, c.resources)
			if len(got) > c.most || !utf8.ValidString(got) {
				t.Errorf("it became %d bytes, valid UTF-8: %v; expected at most %d, valid", len(got), utf8.ValidString(got), c.most)
			}
			if utf8.ValidString(c.in) && !strings.HasPrefix(c.in, strings.TrimSuffix(got, "…")) {
				t.Errorf("it became %q, expected its beginning", got)
			}
		})
	}
}

func TestSentences(t *testing.T) {
	for want, in := range map[string][]string{
		"": {"", ""}, "a": {"", "a", "a"}, "a; b": {"a", "", "b"},
	} {
		if got := sentences(in...); got != want {
			t.Errorf("%q became %q, expected %q", in, got, want)
		}
	}
	if got := summary([]string{"1", "2", "3", "4", "5", "6", "7"}); got != "1; 2; 3; 4; 5; and 2 more" {
		t.Errorf("it became %q", got)
	}
}
