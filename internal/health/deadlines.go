package health

import (
	"strings"
	"time"
)

// How long something may be on its way where nothing in the object says. What takes longer is stuck.
const (
	// startup is for what has just been made, or is to be given an address: as long as a Deployment's default
	// progressDeadlineSeconds, so that what leads to pods does not complain of them before their Deployment does.
	startup = 10 * time.Minute
	// binding is for a volume to be provisioned and bound, or attached.
	binding = 5 * time.Minute
	// deletion is for finalizers to be removed, and for a namespace to be emptied.
	deletion = 5 * time.Minute
	// convergence is for a custom resource that says that it is at work: a managed database takes half an hour.
	convergence = time.Hour
)

// pending judges what is on its way since a time: it is Reconciling until a limit is over, then what stuck says. What
// does not tell since when is on its way.
func pending(ctx Context, since time.Time, limit time.Duration, stuck Status, reason, message string) Assessment {
	a := verdict(Reconciling, reason, message)
	if since.IsZero() {
		return a
	}
	a.Since = since
	if end := since.Add(limit); ctx.Now.Before(end) {
		a.Recheck = end
		return a
	}
	a.Status = stuck
	a.Message += ", for more than " + formatLimit(limit)
	return a
}

func formatLimit(d time.Duration) string {
	if d == time.Hour {
		return "an hour"
	}
	return strings.TrimSuffix(d.String(), "0s")
}

// longest bounds what is quoted of a text that somebody else wrote.
const maxQuote = 400

// quote adds to a sentence what somebody else says.
func quote(sentence, text string) string {
	if text = brief(text); text == "" {
		return sentence
	}
	return sentence + ": " + text
}

// brief writes a text in one line, without its full stop, and not too long.
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
