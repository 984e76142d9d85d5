package health

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// table looks at everything in a part of a status, or in the whole (an empty path): conditions first, since they have
// reasons, then its own fields, then its parts. Keys go in order, so that equal objects have equal verdicts.
func (v *survey) table(path []string, in map[string]any) {
	if v.left -= 2*len(in) + 1; v.left < 0 || len(path) > mostDepth {
		v.full = true
		return
	}
	keys := slices.Sorted(maps.Keys(in))
	keys = slices.DeleteFunc(keys, func(key string) bool { return in[key] == nil || embedded(v.words(key)) })
	rest := keys[:0:0]
	for _, key := range keys {
		if !v.conditions(path, key, in[key]) {
			rest = append(rest, key)
		}
	}
	v.single(path, in)
	for _, key := range rest {
		switch value := in[key].(type) {
		case string:
			v.text(path, key, value, in)
		case bool:
			v.flag(path, key, value, in)
		}
	}
	v.counts(path, in)
	for _, key := range rest {
		v.part(path, key, in[key])
	}
}

// part looks at a table or a list within a table.
func (v *survey) part(path []string, key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && !v.trouble(path, key, value) {
			v.table(append(slices.Clip(path), key), value)
		}
	case []any:
		if len(value) > 0 && !v.trouble(path, key, value) {
			v.items(path, key, value)
		}
	}
}

// words returns the words of a key. Most keys are there many times.
func (v *survey) words(key string) []string {
	words, known := v.keys[key]
	if !known {
		words = split(key)
		if len(v.keys) < mostKeys {
			v.keys[key] = words
		}
	}
	return words
}

// items looks at the parts in a list, which are named by their names.
func (v *survey) items(path []string, key string, list []any) {
	if v.left -= len(list); v.left < 0 || len(path) > mostDepth {
		v.full = true
		return
	}
	for i, item := range list {
		name := key + "[" + fmt.Sprint(i) + "]"
		switch item := item.(type) {
		case map[string]any:
			if text, ok := item["name"].(string); ok && text != "" && len(text) <= longestWord {
				name = key + " " + text
			}
			v.table(append(slices.Clip(path), name), item)
		case []any:
			v.items(append(slices.Clip(path), name), key, item)
		}
	}
}

// embedded reports whether what stands under a key is not about the present: what was declared, what is wanted, or what
// was before.
func embedded(words []string) bool {
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "desired", "target", "expected", "previous", "prior", "old", "initial", "wanted", "next", "history", "past":
		return len(words) > 1 || words[0] == "previous" || words[0] == "history"
	}
	switch last := words[len(words)-1]; last {
	case "spec", "template", "templates", "config", "configuration", "parameters", "inputs", "outputs", "labels", "annotations",
		"selector", "selectors", "manifest", "manifests", "values", "env", "history", "metadata", "logs", "events", "revisions",
		"schema":
		return true
	case "state", "phase", "status":
		return len(words) == 2 && words[0] == "last"
	}
	return strings.Join(words, " ") == "last termination state" || len(words) > 1 && words[0] == "last" && words[1] == "applied"
}

// text looks at a text: a phase or a state, an error, or a count such as "1/2".
func (v *survey) text(path []string, key, value string, in map[string]any) {
	words := v.words(key)
	on := strings.EqualFold(value, "true")
	switch {
	case strings.TrimSpace(value) == "" || len(words) == 0:
	case tellsError(words):
		v.failure(path, key, value, in)
	case key == "reason" && len(path) == 0 && fails(value):
		v.against(path, v.reported(path, key, value, in))
	case on || strings.EqualFold(value, "false"):
		v.flag(path, key, on, in)
	case tellsState(words):
		v.says(path, key, value, detail(in, key))
	case key == "level" || key == "severity":
		v.level(path, key, value, in)
	case words[len(words)-1] == "inprogress":
		v.against(path, v.working(time.Time{}, "", camel(key), quote(v.name(path)+" has "+key, value)))
	case len(path) == 0 && plainlyBad(words, value):
		v.against(path, v.reported(path, key, value, map[string]any{"reason": key}))
	default:
		v.ratio(path, key, value)
	}
}

// plainlyBad reports whether a text is one word for a fault, under a key that can have one: "replication: broken".
func plainlyBad(key []string, value string) bool {
	words := split(value)
	return len(words) == 1 && faults[words[0]] && !slices.ContainsFunc(key, func(w string) bool {
		return slices.Contains([]string{"type", "name", "policy", "action", "mode", "on", "event", "level", "severity"}, w)
	})
}

// faults are words that mean a fault wherever they stand.
var faults = wordSet(`failed failure broken error errored degraded unhealthy lost crashed dead faulted faulty corrupted corrupt offline
	unreachable disconnected unavailable`)

// level looks at how bad a part says that it is.
func (v *survey) level(path []string, key, value string, in map[string]any) {
	if len(path) > 0 && (fails(value) && !strings.EqualFold(value, "warn") || strings.EqualFold(value, "fatal")) {
		v.against(path, v.reported(path, key+" "+value, detail(in, ""), in))
	}
}

// tellsState reports whether a key is that of a phase or a state.
func tellsState(words []string) bool {
	switch words[len(words)-1] {
	case "phase", "state", "status", "health", "stage", "robustness", "compliance", "compliant", "readiness", "result", "outcome",
		"conclusion", "availability", "verdict", "condition", "healthiness", "liveness", "progress":
		return words[0] != "power"
	}
	return false
}

// tellsError reports whether a key is that of an error.
func tellsError(words []string) bool {
	for i, w := range words {
		switch w {
		case "error", "errors", "failure", "failures", "err", "errs":
			rest := words[i+1:]
			return len(rest) == 0 || len(rest) == 1 && slices.Contains(
				[]string{"message", "messages", "msg", "reason", "details", "detail", "description", "text", "info", "string", "cause"}, rest[0])
		}
	}
	return false
}

// detail returns what is said beside a phase.
func detail(in map[string]any, but string) string {
	for _, key := range []string{
		"message", "statusMessage", "phaseMessage", "errorMessage", "statusDescription", "description", "reason", "phaseReason", "details",
	} {
		if text, ok := in[key].(string); ok && key != but && text != "" {
			return text
		}
	}
	return ""
}

// says looks at a phase or a state.
func (v *survey) says(path []string, key, value, detail string) {
	whole := len(path) == 0
	message := quote(v.name(path)+" has the "+key+" "+brief(value), detail)
	if lacks(value) {
		v.against(path, v.undated("ReplicasNotReady", message))
	}
	switch means := signifies(value); means {
	case good, done:
		v.favours(path, key, value, means, message)
	case busy:
		v.against(path, v.working(time.Time{}, value, "Busy", message))
	case rest:
		switch {
		case !v.rests(value):
			v.wrong(path, value, message)
		case whole || pauses(value):
			v.against(path, verdict(Reconciling, word(value, "Resting"), message))
		}
	case mute:
		v.against(path, verdict(Unknown, word(value, "Unknown"), message))
	case bad:
		v.wrong(path, value, message)
	case unknown:
		if whole {
			v.strange = "the " + key + " " + brief(value)
			v.sentence = v.sentence || len(split(value)) > 2
		}
	case neutral, step:
	}
}

// wrong takes in a phase or a state that says that something is wrong.
func (v *survey) wrong(path []string, value, message string) {
	a := v.notYet(time.Time{}, value, "Failed", message)
	if words := split(value); len(path) == 0 && len(words) == 1 && gone[words[0]] && a.Status == Unhealthy {
		a.Status = Down
	}
	v.against(path, a)
}

// lacks reports whether a sentence begins with a count that is not full: "2 of 3 nodes ready".
func lacks(text string) bool {
	part := portion.FindStringSubmatch(text)
	if part == nil {
		return false
	}
	have, _ := numeral(part[1])
	want, _ := numeral(part[2])
	return have < want
}

var portion = regexp.MustCompile(`^(\d{1,9}) ?(?:/|of|out of) ?(\d{1,9})\b`)

// favours takes in a phase or a state that says that it works. One that only says that it runs does not say that it will
// succeed, where it is to run to its end.
func (v *survey) favours(path []string, key, value string, means meaning, message string) {
	if len(path) > 1 {
		return
	}
	words := v.words(key)
	if means == good && v.finite() && slices.ContainsFunc(split(value), func(w string) bool { return runsNow([]string{w}) }) {
		v.against(path, v.working(time.Time{}, value, "Running", message))
		return
	}
	if len(path) == 0 && (len(words) == 1 || slices.ContainsFunc(words, func(w string) bool {
		return summary[w] || slices.Contains(v.kind, w)
	})) {
		v.strong = true
		v.ended = v.ended || means == done && v.finite()
		return
	}
	v.weak = true
}

// summary are words in the keys of what tells of the whole.
var summary = wordSet("current overall printable lifecycle health cluster aggregate summary total")

func pauses(text string) bool {
	return slices.ContainsFunc(split(text), func(w string) bool {
		return strings.HasPrefix(w, "suspend") || strings.HasPrefix(w, "pause") || strings.HasPrefix(w, "hibernat") ||
			w == "stopped" || w == "halted"
	})
}

// failure looks at an error. One that is told to be older than the last success is over.
func (v *survey) failure(path []string, key, text string, in map[string]any) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "none", "nil", "null", "<nil>", "n/a", "no error", "noerror", "false", "ok", "-", "0":
		return
	}
	if overcome(in) {
		return
	}
	v.against(path, v.reported(path, key, text, in))
}

// overcome reports whether the last success is later than the last failure.
func overcome(in map[string]any) bool {
	var failed, succeeded time.Time
	for key, value := range in {
		words := split(key)
		at, ok := moment(value)
		if !ok || len(words) < 2 || words[0] != "last" {
			continue
		}
		switch {
		case meansAlone(words[1]) == bad && at.After(failed):
			failed = at
		case strings.HasPrefix(words[1], "success") && at.After(succeeded):
			succeeded = at
		}
	}
	return !failed.IsZero() && succeeded.After(failed)
}

func (v *survey) reported(path []string, key, text string, in map[string]any) Assessment {
	reason, _ := in["reason"].(string)
	if signifies(reason) != bad {
		reason = key
	}
	return verdict(Unhealthy, word(reason, "Error"), quote(v.name(path)+" reports "+key, text))
}

// trouble looks at a table or a list that is not empty, and reports whether its name says what it means that there is
// something in it: errors, unreadyMembers, pauseConditions.
func (v *survey) trouble(path []string, key string, value any) bool {
	words := v.words(key)
	if len(words) == 0 || tellsState(words) {
		return false
	}
	list, isList := value.([]any)
	inside := append(slices.Clip(path), key)
	switch {
	case pauses(key) && len(path) == 0:
		v.against(path, verdict(Reconciling, "Paused", v.name(path)+" has "+key))
		return true
	case isList && len(words) == 1 && (meansAlone(words[0]) == busy || meansAlone(words[0]) == rest):
		v.against(inside, verdict(Reconciling, word(key, "Busy"), fmt.Sprintf("%s has %d %s", v.name(path), len(list), key)))
		return true
	case !tellsError(words) && polarity(key) != bad:
		return false
	}
	text, told := told(value)
	if told {
		v.against(inside, verdict(Unhealthy, word(key, "Error"), quote(v.name(path)+" reports "+key, text)))
	}
	return told
}

// told returns what errors say, and whether there are any that are current.
func told(value any) (string, bool) {
	switch value := value.(type) {
	case map[string]any:
		return detail(value, ""), holdsAny(value) && !overcome(value)
	case []any:
		switch first := value[0].(type) {
		case string:
			return first, true
		case map[string]any:
			return detail(first, ""), true
		}
	}
	return "", true
}

// holdsAny reports whether anything in a table is not empty.
func holdsAny(in map[string]any) bool {
	for _, value := range in {
		if holds(value) {
			return true
		}
	}
	return false
}

// holds reports whether a value is anything but empty.
func holds(value any) bool {
	switch value := value.(type) {
	case string:
		return value != ""
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	case bool:
		return value
	case float64:
		return value != 0
	case int64:
		return value != 0
	}
	return false
}

// flag looks at a truth value, which is read as a condition without a reason. Of a part only what is plain counts.
func (v *survey) flag(path []string, key string, on bool, in map[string]any) {
	words := v.words(key)
	if len(words) == 0 {
		return
	}
	whole := len(path) == 0
	message := quote(v.name(path)+" has "+key+" "+fmt.Sprint(on), detail(in, ""))
	switch means := polarity(key); means {
	case good, done, step:
		if on && whole {
			v.raised(words, means)
		} else if !on {
			v.lowered(path, key, words[len(words)-1], means, message)
		}
	case bad:
		if on {
			v.against(path, verdict(Unhealthy, word(key, "Failed"), message))
		}
	case busy:
		if on {
			v.against(path, v.working(time.Time{}, "", word(key, "Busy"), message))
		}
	case rest:
		if on && (whole || pauses(key)) {
			v.against(path, verdict(Reconciling, word(key, "Resting"), message))
		}
	case unknown, neutral, mute:
	}
}

// raised takes in a truth value of the whole that is true as it is to be.
func (v *survey) raised(words []string, means meaning) {
	if means == step {
		return
	}
	v.strong = v.strong || len(words) == 1 && !mild[words[0]]
	v.weak = v.weak || v.tells(words)
	v.ended = v.ended || means == done && v.finite()
}

// lowered takes in a truth value that is to be true, and is not.
func (v *survey) lowered(path []string, key, last string, means meaning, message string) {
	reason := "Not" + camel(key)
	switch {
	case len(path) > 0 && !plain[last]:
	case means == good && !mild[last]:
		v.against(path, v.notYet(time.Time{}, "", reason, message))
	case worse(Reconciling, v.soft.Status):
		v.soft = verdict(Reconciling, reason, message)
	}
}

// mild are good words of which the contrary is not bad in itself; plain are those that count in parts.
var (
	mild = wordSet(`active enabled attached admitted promoted joined elected signed linked pulled fresh restored
		permitted provided mounted passed verified live leader running streaming usable recovered authenticated`)
	plain = wordSet("ready healthy available synced valid")
)

// ratio looks at a count of a whole, such as "1/2".
func (v *survey) ratio(path []string, key, value string) {
	words := v.words(key)
	switch words[len(words)-1] {
	case "ready", "replicas", "available", "healthy", "pods", "nodes", "members", "instances":
	default:
		return
	}
	have, want, ok := strings.Cut(value, "/")
	h, isNumber := numeral(strings.TrimSpace(have))
	w, isToo := numeral(strings.TrimSpace(want))
	if ok && isNumber && isToo {
		v.count(path, h, w)
	}
}
