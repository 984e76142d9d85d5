package controller

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How long texts may be, in bytes as they are stored.
const (
	mostWord    = 64
	mostRead    = 1024 // of what is to become a word: metav1.Condition allows no longer reason
	mostReport  = 256  // what names a refused report
	mostMessage = 1024 // of the workload
)

// word makes a reason one that the API server takes: a CamelCase word. What is in it instead may be anything, if it is
// from a custom resource; of what has no letter the fallback is left.
//
// Source: metav1.Condition, whose reason has to match ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$.
func word(reason, fallback string) string {
	var out strings.Builder
	upper := false
	for _, r := range reason[:min(len(reason), mostRead)] {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digit := r >= '0' && r <= '9' || r == '_'
		switch {
		case out.Len() == mostWord:
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

// shorten cuts a message so that those of all resources together stay far below what the API server stores
// of one object (1.5 MiB by default), whatever the API server and admission webhooks put into their errors.
func shorten(message string, resources int) string {
	const all, most = 200_000, 512 // bytes
	return cut(message, min(max(all/max(resources, 1), leastMessage), most))
}

// cut returns the beginning of a text on one line, without what is not UTF-8 and what would move a terminal's cursor.
// The limit is for what it takes in JSON, where a character may take six times its bytes, without the dots at the end.
func cut(text string, limit int) string {
	var out strings.Builder
	taken := 0
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			continue
		}
		if unicode.IsControl(r) {
			r = ' '
		}
		if taken += encoded(r); taken > limit {
			return out.String() + "…"
		}
		out.WriteRune(r)
	}
	return out.String()
}

// encoded is how many bytes a character takes in JSON.
func encoded(r rune) int {
	switch r {
	case '<', '>', '&', '\u2028', '\u2029':
		return len(`\u003c`)
	case '"', '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// sentences joins those that are not empty, each once.
func sentences(all ...string) string {
	var out []string
	for _, s := range all {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// summary joins sentences, as many as fit a condition's message.
func summary(all []string) string {
	const shown = 5
	if more := len(all) - shown; more > 0 {
		all = append(slices.Clone(all[:shown]), fmt.Sprintf("and %d more", more))
	}
	return shorten(strings.Join(all, "; "), 1)
}
