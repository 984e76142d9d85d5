package threeport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestKind(t *testing.T) {
	for _, tc := range []struct {
		reason string
		err    error
		want   Kind
	}{
		{"no error", nil, KindNone},
		{"another package's", errors.New("disk full"), KindRetryable},
		{"wrapped", fmt.Errorf("send: %w", &Error{StatusCode: 404}), KindNotFound},
		{"network", &Error{Err: context.DeadlineExceeded}, KindRetryable},
		{"never sent", &Error{Unsendable: true}, KindPermanent},
		{"garbled success", &Error{StatusCode: 200}, KindRetryable},
		{"redirect", &Error{StatusCode: 302, Foreign: true}, KindRetryable},
		{"bad request", &Error{StatusCode: 400}, KindPermanent},
		{"bad request to a proxy", &Error{StatusCode: 400, Foreign: true}, KindRetryable},
		{"unauthorized", &Error{StatusCode: 401}, KindUnauthorized},
		{"forbidden", &Error{StatusCode: 403}, KindUnauthorized},
		{"forbidden instance", &Error{StatusCode: 403, Problem: ProblemForbidden}, KindForbidden},
		{"no row", &Error{StatusCode: 404}, KindNotFound},
		{"no route", &Error{StatusCode: 404, Foreign: true}, KindRetryable},
		{"no such method", &Error{StatusCode: 405, Foreign: true}, KindRetryable},
		{"timeout", &Error{StatusCode: 408}, KindRetryable},
		{"too large", &Error{StatusCode: 413}, KindPermanent},
		{"too large for a proxy", &Error{StatusCode: 413, Foreign: true}, KindPermanent},
		{"too early", &Error{StatusCode: 425}, KindRetryable},
		{"too many", &Error{StatusCode: 429}, KindRetryable},
		{"server error", &Error{StatusCode: 500}, KindRetryable},
		{"gateway", &Error{StatusCode: 502, Foreign: true}, KindRetryable},
	} {
		if got := KindOf(tc.err); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"-7":                            0,
		"soon":                          0,
		"1.5":                           0,
		"9223372036854775807":           maxRetryAfter,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 03:00:00 GMT": 0,
		"Fri, 02 Jan 2060 03:00:00 GMT": maxRetryAfter,
	} {
		if got := parseRetryAfter(header, now); got != want {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	got := shorten("a\nb" + strings.Repeat("é", maxMessage))
	if !strings.HasPrefix(got, "a b") || len(got) > maxMessage+len("…") || !utf8.ValidString(got) {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}
