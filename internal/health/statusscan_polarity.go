package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// readCondition weighs a condition by the polarity of its type: normal-true, abnormal-true, or neither.
//
// Source: API conventions, "Typical status properties": a type may be of either polarity.
func (v *statusScan) readCondition(path []string, c typedCondition) {
	means := polarity(c.name)
	if v.trace != nil {
		v.trace.reading(path, "conditions["+c.name+"]", c.status)
	}
	switch {
	case c.stale:
		v.stale = v.stale || len(path) == 0 && !slices.Contains([]meaning{unclassified, neutral, step}, means)
	case c.name == "Progressing":
		v.progressingCondition(path, c)
	case slices.Contains([]meaning{good, done, step}, means):
		v.normalCondition(path, c, means)
	case c.name == "Warning" || c.name == "Warnings": // the object works nevertheless
	case c.status == "True" && slices.Contains([]meaning{bad, busy, rest}, means):
		v.abnormalCondition(path, c, means)
	case means != bad && means != rest && c.status != "":
		v.otherCondition(path, c, means)
	}
}

// title returns the type of a condition without its prefix, as a reason.
func (c typedCondition) title() string {
	return camelReason(c.name[strings.LastIndexByte(c.name, '/')+1:], "Condition")
}

// normalCondition weighs a condition that is meant to be True.
func (v *statusScan) normalCondition(path []string, c typedCondition, means meaning) {
	words := splitWords(c.name)
	if c.status == "True" {
		v.metCondition(path, c, words, means)
		return
	}
	soft := v.isOptionalCondition(c, words, means) && (c.status != "False" || !reportsFailure(c.reason))
	a := v.unmetCondition(path, c, soft)
	switch {
	case !soft:
		v.against(path, a)
	case len(path) == 0:
		v.softAgainst(a)
	}
}

// metCondition adds a condition that is True as it is meant to be, unless its reason is bad, or it only says that
// something runs that has to end.
func (v *statusScan) metCondition(path []string, c typedCondition, words []string, means meaning) {
	switch {
	case reportsFailure(c.reason):
		v.failedCondition(path, c)
	case v.isUnderWay(c, words):
		v.against(path, v.working(time.Time{}, c.reason, "Running", quote(v.name(path)+" is Running", c.message)))
	case means == step:
	case len(path) == 0 && len(words) == 1:
		v.proves()
		v.ended = v.ended || means == done && v.finite
	case len(path) <= 2 && v.isAboutWhole(splitWords(c.name[strings.LastIndexAny(c.name, "/.")+1:])): // ACK.ResourceSynced
		v.suggests()
	}
}

// isUnderWay reports whether a condition that is True says only that a run, or a reconciliation, is under way.
func (v *statusScan) isUnderWay(c typedCondition, words []string) bool {
	if lastWord(words) == "running" && v.isAboutWhole(words) && v.finite && classify(c.reason) != done {
		return true
	}
	return c.name == "Running" && c.reason == "Running" && strings.Contains(strings.ToLower(c.message), "reconcil")
}

// isOptionalCondition reports whether a normal condition that is not True says little of the whole. It is a step, or the
// end of a run, or a state that comes and goes.
func (v *statusScan) isOptionalCondition(c typedCondition, words []string, means meaning) bool {
	alone := len(words) == 1
	switch last := lastWord(words); {
	case means == step, c.minor && !overallTypes.has(c.name), last == "enabled":
		return true
	case alone && means == done:
		return c.name != "Succeeded"
	default:
		return (alone || v.finite) && temporaryStates.has(last)
	}
}

// unmetCondition assesses by a normal condition that is not True.
func (v *statusScan) unmetCondition(path []string, c typedCondition, soft bool) Assessment {
	name, isNot := v.name(path), "Not"+c.title()
	message := quote(name+" is not "+c.title(), c.message)
	reason := classify(c.reason)
	switch {
	case c.status == "Unknown" && v.namesSuspension(c.reason):
		return verdict(Healthy, camelReason(c.reason, "Paused"), message)
	case c.status == "Unknown" && reason == rest: // HeartbeatStopped
		return v.notAttained(c.since, c.reason, isNot, message)
	case c.status == "Unknown":
		return v.working(c.since, c.reason, c.title()+"Unknown", quote(name+" is not "+c.title()+" yet", c.message))
	case c.status != "False":
		return healthy // the status is malformed, which is noted
	case c.name == "Succeeded" && reason != busy:
		a := verdict(Unhealthy, camelReason(c.reason, "NotSucceeded"), message)
		if len(path) == 0 {
			a.Status = Down
		}
		a.Since = c.since
		return a
	case soft:
		return v.working(c.since, c.reason, isNot, message)
	}
	return v.notAttained(c.since, c.reason, isNot, message)
}

// abnormalCondition weighs a condition that is True and is not meant to be.
func (v *statusScan) abnormalCondition(path []string, c typedCondition, means meaning) {
	message := quote(v.name(path)+" reports "+c.title(), c.message)
	a := verdict(Unhealthy, camelReason(c.reason, c.title()), message)
	switch {
	case means == busy && c.offersUpgrade():
		return // the object works, and somebody may upgrade it
	case means == busy && len(path) == 0 && strings.HasSuffix(c.name, "Progressing"): // of a part: the summary decides
		v.softAgainst(v.working(c.since, c.reason, c.title(), message))
		return
	case means == busy:
		a = v.working(c.since, c.reason, c.title(), message)
	case means == rest && v.namesSuspension(c.title()):
		a = verdict(Healthy, c.title(), message)
	case len(path) == 0 && c.name == "Failed" && v.finite:
		a.Status = Down
	}
	a.Since = c.since
	v.against(path, a)
}

// offersUpgrade reports whether a condition says that an upgrade waits for an approval.
func (c typedCondition) offersUpgrade() bool {
	words := splitWords(c.name + " " + c.reason)
	return upgradeWords.hasAny(words) && strings.Contains(strings.ToLower(c.name+c.reason+c.message), "approv")
}

// otherCondition weighs a condition of neither polarity. Its reason counts if it is a failure. If it is False, it counts
// if its type is a goal, or if its reason or its message complains.
func (v *statusScan) otherCondition(path []string, c typedCondition, means meaning) {
	if reportsFailure(c.reason) {
		v.failedCondition(path, c)
		return
	}
	if c.status != "False" || means != unclassified && means != neutral {
		return
	}
	words := splitWords(c.name)
	complaint := deniesSubject(c.reason, words) || means == unclassified && (isGoal(words) || complains(c.message))
	a := v.unmetCondition(path, c, !complaint)
	last := lastWord(words)
	switch {
	case complaint:
		v.against(path, a)
	case means == unclassified && len(path) == 0 && strings.HasSuffix(last, "ed") && !unwantedStates.has(last):
		v.softAgainst(a)
	}
}

// isGoal reports whether the words of an unclassified type are those of something to be reached.
func isGoal(words []string) bool {
	return len(words) > 1 && (words[0] == "has" || words[0] == "is") || attainedStates.has(lastWord(words))
}

// failedCondition adds a condition whose reason is a failure.
func (v *statusScan) failedCondition(path []string, c typedCondition) {
	a := verdict(Unhealthy, camelReason(c.reason, c.title()), quote(fmt.Sprintf("%s reports %s %s", v.name(path), c.title(), c.status), c.message))
	a.Since = c.since
	v.against(path, a)
}

// progressingCondition weighs the condition Progressing, which stays True when the work is done, as that of Deployments.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status
func (v *statusScan) progressingCondition(path []string, c typedCondition) {
	message := quote(v.name(path)+" is Progressing", c.message)
	last := lastWord(splitWords(c.reason))
	switch {
	case v.namesSuspension(c.reason):
		v.against(path, verdict(Healthy, camelReason(c.reason, "Paused"), message))
	case c.status == "True" && (vocabulary[last] == done || slices.Contains([]string{"available", "healthy", "uptodate", "idle"}, last)):
	case c.status == "True":
		v.against(path, v.working(c.since, c.reason, "Progressing", message))
	case classify(c.reason) == bad || classify(c.reason) == rest:
		v.failedCondition(path, c)
	}
}
