package health

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// readText reads a text by the first rule that applies.
func (v *statusScan) readText(f statusField, value string) {
	isTrue := strings.EqualFold(value, "true")
	switch {
	case strings.TrimSpace(value) == "" || len(f.words) == 0:
	case isErrorKey(f.words):
		v.readError(f, value)
	case f.key == "reason" && f.ofWhole() && reportsFailure(value):
		v.against(f.path, v.reported(f.path, f.key, value, f.in))
	case isTrue || strings.EqualFold(value, "false"):
		v.readFlag(f, isTrue)
	case isStateKey(f.words):
		v.readState(f, value, detailOf(f.in, f.key))
	case f.key == "level" || f.key == "severity":
		v.readSeverity(f, value)
	case lastWord(f.words) == "inprogress":
		v.against(f.path, v.working(time.Time{}, "", camelCase(f.key), quote(v.name(f.path)+" has "+f.key, value)))
	case f.ofWhole() && isPlainFault(f.words, value):
		v.against(f.path, v.reported(f.path, f.key, value, map[string]any{"reason": f.key}))
	default:
		v.readRatio(f, value)
	}
}

// isErrorKey reports whether the key of some words has an error as its value.
func isErrorKey(words []string) bool {
	at := slices.IndexFunc(words, errorKeys.has)
	if at < 0 {
		return false
	}
	behind := words[at+1:]
	return len(behind) == 0 || len(behind) == 1 && errorDetailKeys.has(behind[0])
}

// targetStates are the keys of the state of a target: see readPerTarget.
var targetStates = []string{"state", "status", "phase", "health", "compliant", "syncStatus"}

// isStateKey reports whether the key of some words has a phase or a state as its value. A power state is none: it does
// not show whether the object works.
func isStateKey(words []string) bool { return stateKeys.has(lastWord(words)) && words[0] != "power" }

// isPlainFault reports whether a text is one word for a fault, and its key is not that of an option.
func isPlainFault(key []string, value string) bool {
	words := splitWords(value)
	return len(words) == 1 && plainFaults.has(words[0]) && !wordKeys.hasAny(key)
}

// readError reads the text of an error. An error that is older than the latest success is over.
func (v *statusScan) readError(f statusField, text string) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "none", "nil", "null", "<nil>", "n/a", "no error", "noerror", "false", "ok", "-", "0":
		return
	}
	if !laterSuccess(f.in) {
		v.against(f.path, v.reported(f.path, f.key, text, f.in))
	}
}

// laterSuccess reports whether a table has a time of a success that is later than that of a failure.
func laterSuccess(in map[string]any) bool {
	var failed, succeeded time.Time
	for key, value := range in {
		words := splitWords(key)
		at, ok := moment(value)
		if !ok || len(words) < 2 || words[0] != "last" {
			continue
		}
		switch {
		case classifyWord(words[1]) == bad && at.After(failed):
			failed = at
		case strings.HasPrefix(words[1], "success") && at.After(succeeded):
			succeeded = at
		}
	}
	return !failed.IsZero() && succeeded.After(failed)
}

// reported assesses by an error under a key. The reason beside it is taken if it is bad.
func (v *statusScan) reported(path []string, key, text string, in map[string]any) Assessment {
	reason, _ := in["reason"].(string)
	if classify(reason) != bad {
		reason = key
	}
	return verdict(Unhealthy, camelReason(reason, "Error"), quote(v.name(path)+" reports "+key, text))
}

// readSeverity reads the level of a message in a part of a status.
func (v *statusScan) readSeverity(f statusField, value string) {
	isError := reportsFailure(value) && !strings.EqualFold(value, "warn") || strings.EqualFold(value, "fatal")
	if isError && !f.ofWhole() {
		v.against(f.path, v.reported(f.path, f.key+" "+value, detailOf(f.in, ""), f.in))
	}
}

// detailOf returns the description beside a phase or an error, but not that under the given key.
func detailOf(in map[string]any, except string) string {
	for _, key := range []string{
		"message", "statusMessage", "phaseMessage", "errorMessage", "statusDescription", "description", "reason", "phaseReason", "details",
	} {
		if text, ok := in[key].(string); ok && key != except && text != "" {
			return text
		}
	}
	return ""
}

// readState reads a phase or a state by its class.
func (v *statusScan) readState(f statusField, value, detail string) {
	message := quote(v.name(f.path)+" has the "+f.key+" "+brief(value), detail)
	if startsWithPartialCount(value) {
		v.against(f.path, v.undated("ReplicasNotReady", message))
	}
	switch means := classify(value); means {
	case good, done:
		v.goodState(f, value, means, message)
	case busy:
		v.against(f.path, v.working(time.Time{}, value, "Busy", message))
	case rest:
		v.restState(f, value, detail, message)
	case unknownWord:
		v.against(f.path, verdict(Unknown, camelReason(value, "Unknown"), message))
	case bad:
		v.badState(f, value, message)
	case unclassified:
		if f.ofWhole() && strings.IndexFunc(value, unicode.IsLetter) >= 0 { // else it is a ratio or a number
			v.unclassified = "the " + f.key + " " + brief(value)
			v.sentence = v.sentence || len(splitWords(value)) > 2
		}
	case neutral, step:
	}
}

// restState adds a phase or a state that says that the object rests. It is idle only if somebody wants it so.
func (v *statusScan) restState(f statusField, value, detail, message string) {
	switch {
	case !v.namesSuspension(value):
		v.badState(f, value, message)
	case f.ofWhole() && (complains(detail) || v.isToRun()):
		v.against(f.path, verdict(Unhealthy, camelReason(value, "Resting"), message))
	case f.ofWhole() || namesPause(value):
		v.against(f.path, verdict(Healthy, camelReason(value, "Resting"), message))
	}
}

// isToRun reports whether the spec asks for a state that is no rest.
func (v *statusScan) isToRun() bool {
	spec, _ := v.object.value("spec").(map[string]any)
	return slices.ContainsFunc(desiredStateFields, func(name string) bool { return isGood(spec[name]) })
}

// badState adds a phase or a state that says that something is wrong.
func (v *statusScan) badState(f statusField, value, message string) {
	a := v.notAttained(time.Time{}, value, "Failed", message)
	if words := splitWords(value); f.ofWhole() && len(words) == 1 && downPhases.has(words[0]) && a.Status == Unhealthy {
		a.Status = Down
	}
	v.against(f.path, a)
}

// goodState adds a phase or a state that says that the object works. A run that is under way need not succeed.
func (v *statusScan) goodState(f statusField, value string, means meaning, message string) {
	if len(f.path) > 1 {
		return
	}
	if means == good && v.finite && runningWords.hasAny(splitWords(value)) {
		v.against(f.path, v.working(time.Time{}, value, "Running", message))
		return
	}
	isSummary := func(w string) bool { return wholeWords.has(w) || slices.Contains(v.kind, w) }
	if f.ofWhole() && (len(f.words) == 1 || slices.ContainsFunc(f.words, isSummary)) {
		v.proves()
		v.ended = v.ended || means == done && v.finite
		return
	}
	v.suggests()
}

// startsWithPartialCount reports whether a sentence starts with a count that is not full: "2 of 3 nodes ready".
func startsWithPartialCount(text string) bool {
	part := partialCount.FindStringSubmatch(text)
	if part == nil {
		return false
	}
	have, _ := numeral(part[1])
	want, _ := numeral(part[2])
	return have < want
}

var partialCount = regexp.MustCompile(`^(\d{1,9}) ?(?:/|of|out of) ?(\d{1,9})\b`)

// namesSuspension reports whether a reason or a phase is a word for rest, perhaps with the suspended kind: Stopped and
// ClusterHibernated do, HeartbeatStopped does not.
func (v *statusScan) namesSuspension(text string) bool {
	suspends := false
	for _, w := range splitWords(text) {
		switch {
		case classifyWord(w) == rest:
			suspends = true
		case !suspensionFillers.has(w) && !fillerWords.has(w) && !wholeWords.has(w) && !slices.Contains(v.kind, w):
			return false
		}
	}
	return suspends
}

// namesPause reports whether a text has a form of suspend, pause or hibernate, or says stopped or halted.
func namesPause(text string) bool {
	return slices.ContainsFunc(splitWords(text), func(w string) bool {
		return strings.HasPrefix(w, "suspend") || strings.HasPrefix(w, "pause") || strings.HasPrefix(w, "hibernat") ||
			w == "stopped" || w == "halted"
	})
}
