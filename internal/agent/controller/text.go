package controller

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths of texts in bytes, as they are stored.
const (
	maxReasonBytes      = 64
	maxReasonInputBytes = 1024 // of a text that becomes a reason: metav1.Condition allows no longer reason
	maxReportBytes      = 256  // of the name of a rejected report
	maxMessageBytes     = 1024 // of a workload
)

// conditionReason turns a text into a reason that the API server accepts: a CamelCase word. The text may come from a
// custom resource, so it may contain anything. If it contains no letter, the result is the fallback.
//
// Source: the pattern of metav1.Condition.Reason, ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$.
func conditionReason(text, fallback string) string {
	var out strings.Builder
	upper := false
	for _, r := range text[:min(len(text), maxReasonInputBytes)] {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digit := r >= '0' && r <= '9' || r == '_'
		switch {
		case out.Len() == maxReasonBytes:
			return out.String()
		case letter && upper:
			out.WriteRune(unicode.ToUpper(r))
		case letter, digit && out.Len() > 0:
			out.WriteRune(r)
		}
		upper = !letter && !digit && out.Len() > 0
	}
	if out.Len() == 0 {
		return fallback
	}
	return out.String()
}

// truncateMessage shortens one of several messages. Errors of the API server and of admission webhooks have no size limit.
// This limit keeps the messages of all resources together far below the size limit of an object.
func truncateMessage(message string, resources int) string {
	const maxTotal, maxEach = 200_000, 512 // bytes
	return truncate(message, min(max(maxTotal/max(resources, 1), minMessageBytes), maxEach))
}

// truncate returns the beginning of a text on one line. It removes invalid UTF-8, and replaces control characters, which
// could move a terminal's cursor. The limit counts bytes of JSON, where a character takes up to six times its size, and
// excludes the ellipsis.
func truncate(text string, limit int) string {
	var out strings.Builder
	taken := 0
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			continue
		}
		if unicode.IsControl(r) {
			r = ' '
		}
		if taken += jsonRuneBytes(r); taken > limit {
			return out.String() + "…"
		}
		out.WriteRune(r)
	}
	return out.String()
}

// jsonRuneBytes returns the size of a character in JSON.
func jsonRuneBytes(r rune) int {
	switch r {
	case '<', '>', '&', '\u2028', '\u2029':
		return len(`\u003c`)
	case '"', '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// joinUnique joins texts, without empty ones and repetitions.
func joinUnique(texts ...string) string {
	var out []string
	for _, s := range texts {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// summarize joins texts to one message of a condition, and counts those that do not fit.
func summarize(texts []string) string {
	const shown = 5
	if more := len(texts) - shown; more > 0 {
		texts = append(slices.Clone(texts[:shown]), fmt.Sprintf("and %d more", more))
	}
	return truncateMessage(strings.Join(texts, "; "), 1)
}

// sentence returns a subject with its number and its verb: "1 report was rejected", "2 reports were rejected".
func sentence(n int64, noun, singular, plural, rest string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s %s", noun, singular, rest)
	}
	return fmt.Sprintf("%d %ss %s %s", n, noun, plural, rest)
}
