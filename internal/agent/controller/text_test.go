package controller

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// validReason is the pattern of metav1.Condition.Reason.
var validReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func TestConditionReason(t *testing.T) {
	for _, c := range []struct{ reason, in, want string }{
		{reason: "a CamelCase word is kept", in: "CrashLoopBackOff", want: "CrashLoopBackOff"},
		{reason: "a lower-case word is kept", in: "failed", want: "failed"},
		{reason: "digits and underscores within a word are kept", in: "Http_404", want: "Http_404"},
		{reason: "a sentence becomes a word", in: "the quota is exceeded", want: "theQuotaIsExceeded"},
		{reason: "with dashes", in: "image-pull-failed", want: "imagePullFailed"},
		{reason: "with a full stop", in: "Not ready.", want: "NotReady"},
		{reason: "digits before the first letter are removed", in: "404 not found", want: "notFound"},
		{reason: "an empty text", want: "Fallback"},
		{reason: "no letter", in: "12 :_, 34", want: "Fallback"},
		{reason: "only letters that the API server rejects", in: "готово", want: "Fallback"},
		{reason: "some letters that the API server rejects", in: "über all", want: "berAll"},
		{reason: "control characters", in: "Re\x00ady\n", want: "ReAdy"},
		{reason: "invalid UTF-8", in: "\xff\xfe", want: "Fallback"},
		{reason: "a trailing colon", in: "Failed:", want: "Failed"},
		{reason: "a long word", in: strings.Repeat("x", 2000), want: strings.Repeat("x", maxReasonBytes)},
		{
			reason: "the first letter is too far from the start",
			in:     strings.Repeat("1", maxReasonInputBytes) + "x",
			want:   "Fallback",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := conditionReason(c.in, "Fallback"); got != c.want {
				t.Errorf("%q became %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{"", "a", "_", "1a", "a:", "ü b", "\xff", "<&>\u2028\"\\", "a\tb\x7f\u0085", "�"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if got := conditionReason(s, "Fallback"); !validReason.MatchString(got) || len(got) > maxReasonBytes {
			t.Errorf("%q became the reason %q", s, got)
		}
		limit = max(limit%10_000, 0)
		got := truncate(s, limit)
		text, err := json.Marshal(strings.TrimSuffix(got, "…"))
		if err != nil || !utf8.ValidString(got) || len(text) > limit+len(`""`) {
			t.Errorf("%q became %q, which takes %d bytes (%v), want at most %d", s, got, len(text), err, limit)
		}
		if strings.ContainsAny(got, "\x00\x07\x1b\n\r\x7f") {
			t.Errorf("%q has control characters", got)
		}
		if again := truncate(got, limit+len("…")); again != got {
			t.Errorf("truncated again, %q becomes %q", got, again)
		}
	})
}

func TestTruncateMessage(t *testing.T) {
	for _, c := range []struct {
		reason, in string
		resources  int
		most       int
	}{
		{reason: "a short message is kept", in: "short", resources: 1, most: 5},
		{reason: "one resource", in: strings.Repeat("x", 1000), resources: 1, most: 512 + len("…")},
		{reason: "many resources", in: strings.Repeat("x", 1000), resources: 2000, most: 100 + len("…")},
		{reason: "very many resources", in: strings.Repeat("x", 1000), resources: 100_000, most: 40 + len("…")},
		{reason: "no resources", in: strings.Repeat("x", 1000), most: 512 + len("…")},
		{reason: "the limit is within a character", in: strings.Repeat("€", 1000), resources: 1, most: 512 + len("…")},
		{reason: "invalid UTF-8", in: "a\xffb", resources: 1, most: 10},
		{reason: "long invalid UTF-8", in: strings.Repeat("\xff", 1000), resources: 1, most: 512 + len("…")},
		{reason: "characters that JSON escapes", in: strings.Repeat("<", 1000), resources: 1, most: 512/6 + len("…")},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := truncateMessage(c.in, c.resources)
			if len(got) > c.most || !utf8.ValidString(got) {
				t.Errorf("the message became %d bytes, valid UTF-8: %t; want at most %d, valid", len(got), utf8.ValidString(got), c.most)
			}
			if utf8.ValidString(c.in) && !strings.HasPrefix(c.in, strings.TrimSuffix(got, "…")) {
				t.Errorf("the message became %q, want its beginning", got)
			}
		})
	}
}

func TestJoinUnique(t *testing.T) {
	for want, in := range map[string][]string{
		"": {"", ""}, "a": {"", "a", "a"}, "a; b": {"a", "", "b"},
	} {
		if got := joinUnique(in...); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := summarize([]string{"1", "2", "3", "4", "5", "6", "7"}); got != "1; 2; 3; 4; 5; and 2 more" {
		t.Errorf("summarize returned %q", got)
	}
}
