package health

import (
	"fmt"
	"slices"
	"time"
)

// readFlag reads a truth value as a condition without a reason. In a part of the status only plain words count.
func (v *statusScan) readFlag(f statusField, on bool) {
	if len(f.words) == 0 {
		return
	}
	message := quote(fmt.Sprintf("%s %t", v.fieldName(f.path, f.key), on), detailOf(f.in, ""))
	switch means := polarity(f.key); means {
	case good, done, step:
		if on {
			v.raisedFlag(f, means)
		} else {
			v.loweredFlag(f, means, message)
		}
	case bad:
		if on {
			v.against(f.path, verdict(Unhealthy, camelReason(f.key, "Failed"), message))
		}
	case busy:
		if on {
			v.against(f.path, v.working(time.Time{}, "", camelReason(f.key, "Busy"), message))
		}
	case rest:
		if on && (f.ofWhole() || namesPause(f.key)) {
			v.against(f.path, verdict(Healthy, camelReason(f.key, "Resting"), message))
		}
	case unclassified, neutral, unknownWord:
	}
}

// raisedFlag adds a flag that is true and means something good, if it is about the whole.
func (v *statusScan) raisedFlag(f statusField, means meaning) {
	if means == step || !f.ofWhole() && (len(f.path) > 1 || f.path[0] != "health") {
		return
	}
	if len(f.words) == 1 && !optionalFlags.has(f.words[0]) {
		v.proves()
	} else if v.isAboutWhole(f.words) {
		v.suggests()
	}
	v.ended = v.ended || means == done && v.finite
}

// loweredFlag adds a flag that is false and would mean something good.
func (v *statusScan) loweredFlag(f statusField, means meaning, message string) {
	reason, last := "Not"+camelCase(f.key), lastWord(f.words)
	switch {
	case f.ofWhole() && means == done && v.ended: // finished, and not successful
		v.ended = false
		v.against(f.path, verdict(Down, reason, message))
	case !f.ofWhole() && !partFlags.has(last), v.ended: // a run that has ended is not ready any longer
	case means == good && !optionalFlags.has(last):
		v.against(f.path, v.notAttained(time.Time{}, "", reason, message))
	default:
		v.softAgainst(verdict(Reconciling, reason, message))
	}
}

// isAboutWhole reports whether the words of a condition or a flag are about the whole object: one word, or a word that
// sums up behind the kind. SecretReady and PreflightChecksPassed are about a part or a step.
func (v *statusScan) isAboutWhole(words []string) bool {
	if len(words) < 2 {
		return len(words) == 1
	}
	before := words[:len(words)-1]
	return summaryWords.has(lastWord(words)) && !slices.ContainsFunc(before, func(w string) bool {
		return !wholeWords.has(w) && !fillerWords.has(w) && !slices.Contains(v.kind, w)
	})
}
