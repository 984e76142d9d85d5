package health

import (
	"strings"
	"time"
)

// Limits for objects without a deadline of their own. An object that takes longer is stuck.
const (
	// startup is the limit for a new object, or for its address. It equals the default progressDeadlineSeconds of a
	// Deployment, so that a Service does not fail before the Deployment behind it.
	startup = 10 * time.Minute
	// binding is the limit for a volume to be provisioned and bound, or attached.
	binding = 5 * time.Minute
	// deletion is the limit for the removal of finalizers, and for a namespace to become empty.
	deletion = 5 * time.Minute
	// convergence is the limit for a custom resource that reports work under way. A managed database takes half an hour.
	convergence = time.Hour
)

// pending assesses an object that is under way since a time: it is Reconciling within the limit, and has the status stuck
// since the end of the limit. Without a start there is no limit.
func pending(ctx Context, since time.Time, limit time.Duration, stuck Status, reason, message string) Assessment {
	a := verdict(Reconciling, reason, message)
	if since.IsZero() {
		return a
	}
	end := since.Add(limit)
	if ctx.Now.Before(end) {
		a.Since, a.Recheck = since, end
		return a
	}
	a.Status, a.Since = stuck, end
	a.Message += ", for more than " + formatLimit(limit)
	return a
}

func formatLimit(d time.Duration) string {
	if d == time.Hour {
		return "an hour"
	}
	return strings.TrimSuffix(d.String(), "0s")
}

// maxQuote bounds a quoted text, in characters.
const maxQuote = 400

// quote adds the text of another writer to a sentence.
func quote(sentence, text string) string {
	if text = brief(text); text == "" {
		return sentence
	}
	return sentence + ": " + text
}

// brief returns a text as one line of bounded length, without its full stop.
func brief(text string) string {
	if len(text) > 4*maxQuote {
		text = text[:4*maxQuote]
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if runes := []rune(text); len(runes) > maxQuote {
		text = string(runes[:maxQuote]) + "…"
	}
	return strings.TrimRight(text, ". ")
}
