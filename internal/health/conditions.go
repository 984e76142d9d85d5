package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// typed is a condition of any type.
type typed struct {
	name string
	condition
	mild bool // it is said not to count for the whole
}

// conditions looks at a list of conditions, or at a table of them, under whatever name, and reports whether it was one.
func (v *survey) conditions(path []string, key string, value any) bool {
	named := key == "conditions" || strings.HasSuffix(key, "Conditions")
	whole := len(path) == 0 && key == "conditions"
	var found []typed
	switch value := value.(type) {
	case []any:
		if !named && !isConditions(value) {
			return false
		}
		if v.left -= len(value); v.left < 0 {
			v.full = true
			return true
		}
		if pauses(key) {
			return false
		}
		found = v.list(path, whole, value)
	case map[string]any:
		if !named {
			return false
		}
		if v.left -= len(value); v.left < 0 {
			v.full = true
			return true
		}
		found = v.byType(value)
	default:
		if whole {
			v.s.note("status", "conditions")
		}
		return whole
	}
	for _, c := range found {
		v.condition(path, c)
	}
	return true
}

// single looks at a condition that a table is itself, or has in fields of like names: nodeConditionType and
// nodeConditionStatus.
func (v *survey) single(path []string, in map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(in)) {
		prefix, ok := strings.CutSuffix(key, "Type")
		other := prefix + "Status"
		if key == "type" {
			ok, other = len(path) > 0, "status"
		}
		name, isText := in[key].(string)
		if ok && isText && isConditions([]any{map[string]any{"type": name, "status": in[other]}}) {
			v.condition(path, v.read(false, name, map[string]any{
				"status": in[other], "reason": in["reason"], "message": in["message"], "lastTransitionTime": in["lastTransitionTime"],
			}))
		}
	}
}

// isConditions reports whether all items of a list have a type and one of the three words.
func isConditions(list []any) bool {
	for _, item := range list {
		in, ok := item.(map[string]any)
		if _, typed := in["type"].(string); !ok || !typed {
			return false
		}
		if text, ok := in["status"].(string); !ok || text != "True" && text != "False" && text != "Unknown" {
			return false
		}
	}
	return len(list) > 0
}

// list reads a list of conditions. Of a type that is there more than once the latest counts, as in a log of states.
func (v *survey) list(path []string, whole bool, list []any) []typed {
	var out []typed
	at := map[string]int{}
	for i, item := range list {
		in, ok := item.(map[string]any)
		if !ok {
			v.odd(whole)
			continue
		}
		name, isCondition := v.named(path, i, in)
		if !isCondition {
			continue
		}
		c := v.read(whole, name, in)
		old, again := at[name]
		switch {
		case !again:
			at[name] = len(out)
			out = append(out, c)
		case out[old].since.IsZero() || c.since.IsZero() || out[old].since.Equal(c.since):
			if out[old].status != c.status {
				v.odd(whole)
			}
			out[old] = c
		case c.since.After(out[old].since):
			out[old] = c
		}
	}
	if whole {
		return v.unlog(out)
	}
	return out
}

// named returns the type of a condition, which some call its name; false if it is none. What is none in a part is looked
// at as any other part; a phase with its time is an entry of a log.
func (v *survey) named(path []string, i int, in map[string]any) (string, bool) {
	if name, ok := in["type"].(string); ok {
		return name, true
	}
	_, isLog := in["phase"].(string)
	name, ok := in["name"].(string)
	switch whole := len(path) == 0; {
	case in["type"] == nil && isLog:
		return "", false
	case in["type"] == nil && ok:
		return name, true
	case whole:
		v.odd(true)
	default:
		v.table(append(slices.Clip(path), "conditions["+fmt.Sprint(i)+"]"), in)
	}
	return "", false
}

func (v *survey) odd(whole bool) {
	if whole {
		v.s.note("status", "conditions")
	}
}

// unlog returns the latest of some conditions if they are a log: their types are the words of the state.
func (v *survey) unlog(all []typed) []typed {
	isLog := false
	latest := -1
	for i, c := range all {
		if c.status != "True" || c.since.IsZero() {
			return all
		}
		isLog = isLog || strings.EqualFold(c.name, v.s.lookText("status", "state")) || strings.EqualFold(c.name, v.s.lookText("status", "phase"))
		if latest < 0 || !c.since.Before(all[latest].since) {
			latest = i
		}
	}
	if isLog {
		return all[latest : latest+1]
	}
	return all
}

// lookText returns a text, and does not mind if there is something else.
func (f *fields) lookText(path ...string) string {
	var at any = f.object
	for _, key := range path {
		in, _ := at.(map[string]any)
		at = in[key]
	}
	text, _ := at.(string)
	return text
}

// byType reads a table of conditions: by their types either words, truth values or conditions.
func (v *survey) byType(in map[string]any) []typed {
	var out []typed
	for _, name := range slices.Sorted(maps.Keys(in)) {
		switch value := in[name].(type) {
		case map[string]any:
			out = append(out, v.read(false, name, value))
		case string, bool:
			out = append(out, v.read(false, name, map[string]any{"status": value}))
		}
	}
	return out
}

// read reads a condition. Bad news is believed however it is written.
func (v *survey) read(whole bool, name string, in map[string]any) typed {
	inner := &fields{kind: v.s.kind, object: v.s.object}
	c := typed{name: name, condition: inner.readCondition(name, in)}
	if inner.malformed != "" && whole {
		v.s.note("status", "conditions", name)
	}
	if c.status == "" {
		switch text := strings.ToLower(fmt.Sprint(in["status"])); text {
		case "true", "false", "unknown":
			c.status = strings.ToUpper(text[:1]) + text[1:]
		default:
			if s, ok := in["status"].(string); ok && fails(s) { // "Degraded" for a status
				c.status, c.reason = "False", s
			}
		}
	}
	c.mild = in["severity"] == "Info"
	return c
}

// condition weighs a condition by what its type means. Source: API conventions: a type may be of either polarity, and
// Unknown is neither.
func (v *survey) condition(path []string, c typed) {
	means := polarity(c.name)
	switch {
	case c.stale:
		v.stale = v.stale || len(path) == 0 && !slices.Contains([]meaning{unknown, neutral, step}, means)
	case c.name == "Progressing":
		v.progressing(path, c)
	case slices.Contains([]meaning{good, done, step}, means):
		v.wanted(path, c, means)
	case c.name == "Warning" || c.name == "Warnings": // of what works
	case c.status == "True" && slices.Contains([]meaning{bad, busy, rest}, means):
		v.unwanted(path, c, means)
	case means != bad && means != rest && c.status != "":
		v.denied(path, c, means)
	}
}

// denied weighs a condition that is not about the whole, by its reason; and one that is False and of which nobody knows what it means: it counts if it sounds as if it were
// to be True, or if its reason or its message says that something is wrong.
func (v *survey) denied(path []string, c typed, means meaning) {
	if fails(c.reason) {
		v.failed(path, c)
		return
	}
	if c.status != "False" || means != unknown && means != neutral {
		return
	}
	words := split(c.name)
	hard := denies(c.reason, words) || means == unknown && (sounds(words) || complains(c.message))
	a := v.missed(c, !hard, len(path) == 0, v.name(path))
	switch last := len(words) - 1; {
	case hard:
		v.against(path, a)
	case means == unknown && len(path) == 0 && last >= 0 && strings.HasSuffix(words[last], "ed") && worse(a.Status, v.soft.Status) && !unwelcome[words[last]]:
		v.soft = a
	}
}

// sounds reports whether the words of a type are those of something reached or held.
func sounds(words []string) bool {
	return len(words) > 0 && (len(words) > 1 && (words[0] == "has" || words[0] == "is") || attained[words[len(words)-1]])
}

// denies reports whether a reason says that something is not there, other than what the type names, as in NoDrift.
func denies(reason string, of []string) bool {
	words := split(reason)
	if len(words) < 2 || words[0] != "no" && words[0] != "not" {
		return false
	}
	return !slices.Contains(of, words[1]) && negated(meansAlone(words[1]), "not") == bad
}

// complains reports whether a message tells that something is wrong.
func complains(message string) bool {
	words := split(message)
	for i, w := range words {
		switch {
		case i > 0 && negates(words[i-1]):
		case faults[w], w == "missing", w == "cannot", w == "unable":
			return true
		case w == "not" && i+1 < len(words) && !slices.Contains([]string{"necessary", "be", "have"}, words[i+1]) && negated(meansAlone(words[i+1]), w) != good:
			return true
		}
	}
	return false
}

// attained are words for what is to be reached; unwelcome those that are no better for being so.
var (
	attained  = wordSet("formed reached achieved attained agreed converged replicated quorum balanced secured met")
	unwelcome = wordSet(`throttled limited modified changed drifted tainted deleted removed interrupted restarted migrated truncated
		exhausted overcommitted isolated fenced quarantined ignored triggered locked needed restricted replaced scaled`)
)

// unwanted weighs a condition that is True, and is not to be.
func (v *survey) unwanted(path []string, c typed, means meaning) {
	message := quote(v.name(path)+" reports "+c.title(), c.message)
	a := verdict(Unhealthy, word(c.reason, c.title()), message)
	switch {
	case means == busy:
		a = v.working(c.since, c.reason, c.title(), message)
	case means == rest && v.rests(c.title()):
		a = verdict(Reconciling, c.title(), message)
	case len(path) == 0 && c.name == "Failed" && v.finite():
		a.Status = Down
	}
	a.Since = c.since
	v.against(path, a)
}

// title is a condition's type without its prefix, as a reason.
func (c typed) title() string {
	name := c.name
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		name = name[at+1:]
	}
	return word(name, "Condition")
}

func (v *survey) failed(path []string, c typed) {
	a := verdict(Unhealthy, word(c.reason, c.title()), quote(fmt.Sprintf("%s reports %s %s", v.name(path), c.title(), c.status), c.message))
	a.Since = c.since
	v.against(path, a)
}

// progressing weighs the one condition that stays True once all is done, as that of Deployments.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status
func (v *survey) progressing(path []string, c typed) {
	message := quote(v.name(path)+" is Progressing", c.message)
	last := ""
	if words := split(c.reason); len(words) > 0 {
		last = words[len(words)-1]
	}
	switch {
	case v.rests(c.reason):
		v.against(path, verdict(Reconciling, word(c.reason, "Paused"), message))
	case c.status == "True" && (vocabulary[last] == done || last == "available" || last == "healthy" || last == "uptodate" || last == "idle"):
	case c.status == "True":
		v.against(path, v.working(c.since, c.reason, "Progressing", message))
	case signifies(c.reason) == bad || signifies(c.reason) == rest:
		v.failed(path, c)
	}
}

// wanted weighs a condition that is to be True.
func (v *survey) wanted(path []string, c typed, means meaning) {
	whole := len(path) == 0
	words := split(c.name)
	if c.status == "True" {
		v.met(path, c, words, means)
		return
	}
	soft := v.passes(c, words, means) && (c.status != "False" || !fails(c.reason))
	a := v.missed(c, soft, whole, v.name(path))
	switch {
	case !soft:
		v.against(path, a)
	case whole && worse(a.Status, v.soft.Status):
		v.soft = a
	}
}

// passes reports whether a condition that is not True says little of the whole: it is of a step, tells that the end is not
// reached, or may be so or not at any time.
func (v *survey) passes(c typed, words []string, means meaning) bool {
	alone := len(words) == 1
	switch {
	case means == step, c.mild && !summit[c.name]:
		return true
	case alone && means == done:
		return c.name != "Succeeded"
	}
	return (alone || v.finite()) && len(words) > 0 && fleeting[words[len(words)-1]]
}

// missed judges by a condition that is to be True, and is not.
func (v *survey) missed(c typed, soft, whole bool, name string) Assessment {
	message := quote(name+" is not "+c.title(), c.message)
	reasoned := signifies(c.reason)
	switch {
	case c.status == "Unknown" && v.rests(c.reason):
		return verdict(Reconciling, word(c.reason, "Paused"), message)
	case c.status == "Unknown" && reasoned == rest: // HeartbeatStopped
		return v.notYet(c.since, c.reason, "Not"+c.title(), message)
	case c.status == "Unknown":
		return v.working(c.since, c.reason, c.title()+"Unknown", quote(name+" is not "+c.title()+" yet", c.message))
	case c.status != "False":
		return healthy // it cannot be read, which is noted
	case c.name == "Succeeded" && reasoned != busy:
		a := verdict(Unhealthy, word(c.reason, "NotSucceeded"), message)
		if whole {
			a.Status = Down
		}
		a.Since = c.since
		return a
	case soft:
		return v.working(c.since, c.reason, "Not"+c.title(), message)
	}
	return v.notYet(c.since, c.reason, "Not"+c.title(), message)
}

// summit are the types that tell of the whole, however mildly; fleeting are words for what may be so or not at any time.
var (
	summit   = map[string]bool{"Ready": true, "Available": true, "Healthy": true, "Succeeded": true}
	fleeting = wordSet("active running live streaming enabled")
)

// met takes in a condition that is True as it is to be; unless its reason says otherwise, or it only tells that
// something runs that is to end.
func (v *survey) met(path []string, c typed, words []string, means meaning) {
	switch {
	case fails(c.reason):
		v.failed(path, c)
	case len(words) > 0 && words[len(words)-1] == "running" && v.tells(words) && v.finite(),
		c.name == "Running" && (c.reason == "Running" && strings.Contains(strings.ToLower(c.message), "reconcil")):
		v.against(path, v.working(time.Time{}, c.reason, "Running", quote(v.name(path)+" is Running", c.message)))
	case means == step:
	case len(path) == 0 && len(words) == 1:
		v.strong = true
		v.ended = v.ended || means == done && v.finite()
	case len(path) <= 2 && v.tells(split(c.name[strings.LastIndexAny(c.name, "/.")+1:])): // ACK.ResourceSynced
		v.weak = true
	}
}

// runsNow reports whether the words of a type or a phase say only that something runs.
func runsNow(words []string) bool {
	return len(words) > 0 && slices.Contains([]string{"running", "active", "working", "live", "streaming", "alive"}, words[len(words)-1])
}

// tells reports whether the name of a condition or a flag is about the whole: one word, or the kind and a word that sums
// up. Others are about a part or a step: SecretReady, PreflightChecksPassed.
func (v *survey) tells(words []string) bool {
	last := len(words) - 1
	if last <= 0 {
		return last == 0
	}
	return sums[words[last]] && !slices.ContainsFunc(words[:last], func(w string) bool {
		return !summary[w] && !general[w] && !slices.Contains(v.kind, w)
	})
}

// sums are the words that sum up; general those that say nothing of what it is about.
var (
	sums = wordSet(`ready available healthy synced insync established accepted programmed succeeded successful complete completed
		deployed running online active installed reconciled provisioned bound operational up live serving uptodate`)
	general = wordSet("condition resource resources all is fully everything")
)
