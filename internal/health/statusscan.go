package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// statusScan reads the whole status of an object and collects evidence. It reads a table of the status by these rules,
// in this order:
//
//  1. Lists and tables of conditions: readConditions. They come first because they have reasons.
//  2. A condition in fields of the table itself: readConditionFields.
//  3. Texts: readText. They are errors, flags, phases and states, severities or ratios.
//  4. Truth values: readFlag.
//  5. Counts: readCounts, and readReplicas for the whole status.
//  6. Tables and lists: readPart. A name such as errors speaks for itself, else the rules apply to its contents.
//
// Keys about the past or about what is wanted are left out: isNotCurrent. Keys are read in order, so that equal objects
// have equal verdicts.
type statusScan struct {
	object *fields
	ctx    Context
	kind   []string // the words of the kind's name
	finite bool     // the object runs to an end
	evidence
	budget scanBudget
}

// Limits of a scan. An object in etcd has up to some 1.5 MB.
const (
	maxScanValues = 50_000
	maxScanDepth  = 24
	maxScanKeys   = 10_000 // keys whose words are kept
)

// scanBudget bounds the work of a scan.
type scanBudget struct {
	left     int // values that may still be read
	exceeded bool
	words    map[string][]string // words by key; most keys occur many times
}

// take takes a number of values from the budget, and reports whether it was enough.
func (b *scanBudget) take(values int) bool {
	if b.left -= values; b.left < 0 {
		b.exceeded = true
	}
	return b.left >= 0
}

// wordsOf returns the words of a key.
func (b *scanBudget) wordsOf(key string) []string {
	words, known := b.words[key]
	if !known {
		words = splitWords(key)
		if len(b.words) < maxScanKeys {
			b.words[key] = words
		}
	}
	return words
}

// statusField is a field of a status.
type statusField struct {
	path  []string // the table that has the field; empty for the status itself
	key   string
	words []string       // of the key
	in    map[string]any // the table
}

func (f statusField) ofWhole() bool { return len(f.path) == 0 }

// inside returns the path of the values in the field.
func (f statusField) inside() []string { return append(slices.Clip(f.path), f.key) }

// scanStatus scans the status of an object.
func scanStatus(s *fields, ctx Context) *statusScan {
	v := &statusScan{
		object: s, ctx: ctx, kind: splitWords(s.kind.Kind), evidence: newEvidence(ctx.Trace),
		budget: scanBudget{left: maxScanValues, words: map[string][]string{}},
	}
	v.finite = v.runsToAnEnd()
	switch status := s.value("status").(type) {
	case map[string]any:
		v.readTable(nil, status)
		v.trace.reading(nil, "(replicas)", nil)
		v.readReplicas(status)
	case string: // a few kinds have a word for a status
		v.readState(statusField{key: "status", words: []string{"status"}}, status, status)
	case bool:
		v.readFlag(statusField{key: "ready", words: []string{"ready"}}, status)
	case nil:
	default:
		s.note("status")
	}
	return v
}

// verdict returns the worst statement, or Healthy if the status says enough for that.
func (v *statusScan) verdict() Assessment {
	a := v.worst()
	switch {
	case worse(a.Status, Unknown):
		return v.withWarning(a)
	case v.stale:
		return notObserved(v.object)
	case a.Status == Unknown:
		return a
	case v.budget.exceeded:
		return verdict(Unknown, "TooLarge", v.object.subject()+" has a status that is too large to be read")
	case v.rest.idle():
		return v.rest
	case !v.works():
		return v.noSignal()
	case v.ended:
		return Assessment{Verdict: Verdict{Status: Healthy, Reason: Completed}}
	}
	return healthy
}

// noSignal assesses an object whose status has no statement about its health.
func (v *statusScan) noSignal() Assessment {
	message := v.object.subject() + " has no status that shows its health"
	if v.unclassified != "" {
		message = v.object.subject() + " has " + v.unclassified + ", which is in no list of known words; a health rule can define it"
	}
	return verdict(Unknown, "NoSignal", v.quoteWarning(message))
}

// readTable applies the rules to a table.
func (v *statusScan) readTable(path []string, in map[string]any) {
	if !v.budget.take(2*len(in)+1) || len(path) > maxScanDepth {
		v.budget.exceeded = true
		return
	}
	var fields []statusField
	for _, key := range slices.Sorted(maps.Keys(in)) {
		f := statusField{path: path, key: key, words: v.budget.wordsOf(key), in: in}
		if in[key] != nil && !isNotCurrent(f.words) && !v.readConditions(f, in[key]) {
			fields = append(fields, f)
		}
	}
	v.readConditionFields(path, in)
	for _, f := range fields {
		v.trace.reading(path, f.key, in[f.key])
		switch value := in[f.key].(type) {
		case string:
			v.readText(f, value)
		case bool:
			v.readFlag(f, value)
		}
	}
	v.trace.reading(path, "(counts)", nil)
	v.readCounts(path, in)
	for _, f := range fields {
		v.trace.reading(path, f.key, in[f.key])
		v.readPart(f, in[f.key])
	}
}

// isNotCurrent reports whether the value of a key was declared, is wanted, or is about the past.
func isNotCurrent(words []string) bool {
	if len(words) == 0 {
		return false
	}
	if otherTimeKeys.has(words[0]) {
		return len(words) > 1 || pastKeys.has(words[0])
	}
	switch last := lastWord(words); {
	case declaredKeys.has(last):
		return true
	case lastStateKeys.has(last):
		return len(words) == 2 && words[0] == "last"
	}
	return strings.Join(words, " ") == "last termination state" || len(words) > 1 && words[0] == "last" && words[1] == "applied"
}

// readPart reads a table or a list in a field. Both are parts of the object.
func (v *statusScan) readPart(f statusField, value any) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && !v.readByName(f, value) {
			v.readTable(f.inside(), value)
			v.readPerTarget(f, slices.Collect(maps.Values(value)))
		}
	case []any:
		if len(value) > 0 && !v.readByName(f, value) {
			v.readList(f.path, f.key, value)
			v.readPerTarget(f, value)
		}
	}
}

// readPerTarget adds that the object works if its status has a state for each of some targets, and all are good: statuses by their
// reporter, or clusters by their name.
func (v *statusScan) readPerTarget(f statusField, targets []any) {
	if !f.ofWhole() || !targetKeys.has(lastWord(f.words)) || !v.budget.take(len(targets)) {
		return
	}
	for _, target := range targets {
		in, _ := target.(map[string]any)
		key := slices.IndexFunc(targetStates, func(key string) bool { return isGood(in[key]) })
		if key < 0 {
			return
		}
	}
	v.suggests()
}

// isGood reports whether a value is a state that says that something works.
func isGood(value any) bool {
	text, _ := value.(string)
	return text != "" && slices.Contains([]meaning{good, done}, classify(text))
}

// readList reads the items of a list. Items with a name are called by it.
func (v *statusScan) readList(path []string, key string, list []any) {
	if !v.budget.take(len(list)) || len(path) > maxScanDepth {
		v.budget.exceeded = true
		return
	}
	for i, item := range list {
		name := fmt.Sprintf("%s[%d]", key, i)
		switch item := item.(type) {
		case map[string]any:
			if text, ok := item["name"].(string); ok && text != "" && len(text) <= maxReadText {
				name = key + " " + text
			}
			v.readTable(append(slices.Clip(path), name), item)
		case []any:
			v.readList(append(slices.Clip(path), name), key, item)
		}
	}
}

// readByName reads a table or a list that is not empty by its name, and reports whether that decides: errors,
// unreadyMembers and pauseConditions are faults or pauses whatever they contain.
func (v *statusScan) readByName(f statusField, value any) bool {
	if len(f.words) == 0 || isStateKey(f.words) {
		return false
	}
	list, isList := value.([]any)
	switch {
	case namesPause(f.key) && f.ofWhole():
		v.against(f.path, verdict(Healthy, "Paused", v.name(f.path)+" has "+f.key))
		return true
	case isList && len(f.words) == 1 && (classifyWord(f.words[0]) == busy || classifyWord(f.words[0]) == rest):
		v.against(f.inside(), verdict(Reconciling, camelReason(f.key, "Busy"), fmt.Sprintf("%s has %d %s", v.name(f.path), len(list), f.key)))
		return true
	case !isErrorKey(f.words) && polarity(f.key) != bad:
		return false
	}
	text, current := firstError(value)
	if current {
		v.against(f.inside(), verdict(Unhealthy, camelReason(f.key, "Error"), quote(v.name(f.path)+" reports "+f.key, text)))
	}
	return current
}

// firstError returns the text of the first of some errors, and whether they are current.
func firstError(value any) (text string, current bool) {
	switch value := value.(type) {
	case map[string]any:
		return detailOf(value, ""), hasContent(value) && !laterSuccess(value)
	case []any:
		switch first := value[0].(type) {
		case string:
			return first, true
		case map[string]any:
			return detailOf(first, ""), true
		}
	}
	return "", true
}

// hasContent reports whether a value in a table is not empty.
func hasContent(in map[string]any) bool {
	for _, value := range in {
		if !isEmpty(value) {
			return true
		}
	}
	return false
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case bool:
		return !value
	case float64:
		return value == 0
	case int64:
		return value == 0
	}
	return true
}

// fieldName begins a sentence about a field of the object, or of a part of it.
func (v *statusScan) fieldName(path []string, key string) string {
	return v.name(path) + " has " + truncateMiddle(key, maxName)
}

// name names the object, or a part of it, in a sentence. Each field below a part repeats the names in its path, so they are short.
func (v *statusScan) name(path []string) string {
	if len(path) == 0 {
		return v.object.subject()
	}
	if len(path) > 4 {
		path = path[len(path)-4:]
	}
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = truncateMiddle(part, maxName)
	}
	return v.object.subject() + ": " + strings.TrimSuffix(strings.Join(parts, "."), ":")
}
