package health

import (
	"maps"
	"slices"
	"strings"
)

// suspensionFields are fields of a spec that suspend the object if they are true.
//
// Source: spec.suspend of CronJobs and Flux, spec.paused of Deployments and Cluster API, and the like of operators.
var suspensionFields = []struct{ name, reason string }{
	{"suspend", "Suspended"},
	{"suspended", "Suspended"},
	{"paused", "Paused"},
	{"pause", "Paused"},
	{"hibernated", "Hibernated"},
	{"hibernate", "Hibernated"},
	{"stopped", "Stopped"},
	{"stop", "Stopped"},
	{"halted", "Halted"},
	{"shutdown", "Stopped"},
}

// desiredStateFields are fields of a spec that declare whether the object is to run.
var desiredStateFields = []string{"state", "desiredState", "powerState"}

// suspension returns the reason why the spec or the metadata of an object suspends it; empty if nothing does. The status
// of a suspended object may be about the time before.
func suspension(s *fields) string {
	spec, _ := s.value("spec").(map[string]any)
	for _, field := range suspensionFields {
		if on := spec[field.name]; on == true || on == "true" || on == "yes" {
			return field.reason
		}
	}
	if on, ok := spec["running"].(bool); ok && !on || spec["runStrategy"] == "Halted" {
		return "Stopped"
	}
	for _, name := range desiredStateFields {
		if text, ok := spec[name].(string); ok && classify(text) == rest {
			return camelReason(text, "Stopped")
		}
	}
	if text, ok := spec["managementState"].(string); ok && (strings.EqualFold(text, "unmanaged") || strings.EqualFold(text, "removed")) {
		return camelReason(text, "Unmanaged")
	}
	if rolloutPaused(spec) {
		return "Paused"
	}
	return suspensionByMetadata(s)
}

// rolloutPaused reports whether the strategy of a rollout pauses it.
func rolloutPaused(spec map[string]any) bool {
	for _, name := range []string{"strategy", "updateStrategy", "rolloutStrategy"} {
		strategy, _ := spec[name].(map[string]any)
		rolling, _ := strategy["rollingUpdate"].(map[string]any)
		if strategy["paused"] == true || rolling["paused"] == true {
			return true
		}
	}
	return false
}

// suspensionByMetadata returns the reason why an annotation or a label suspends an object; empty if none does.
func suspensionByMetadata(s *fields) string {
	for _, where := range []string{"annotations", "labels"} {
		in, _ := s.value("metadata", where).(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(in)) {
			value, _ := in[key].(string)
			if reason := suspensionByAnnotation(key, value); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// suspensionByAnnotation returns the reason why an annotation or a label suspends its object; empty if it does not. Only
// keys with the prefix of an operator count.
func suspensionByAnnotation(key, value string) string {
	_, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return ""
	}
	name = strings.ToLower(strings.ReplaceAll(name, "-", ""))
	value = strings.ToLower(value)
	on := value == "" || value == "true"
	off := value == "disabled" || value == "false" || value == "skip"
	switch name {
	case "paused", "pause", "pausereconciliation", "pausereconcile", "reconcilepaused", "reconciliationpaused":
		if on {
			return "Paused"
		}
	case "pausedreplicas":
		return "Paused"
	case "suspend", "suspended":
		if on {
			return "Suspended"
		}
	case "reconcile", "reconciliation", "reconciliationloop", "reconcilepolicy", "managed":
		if off {
			return "Paused"
		}
	case "hibernation":
		if on || value == "on" {
			return "Hibernated"
		}
	}
	return ""
}

// withoutGeneration returns the object without its generation, so that no condition is about an earlier one: a controller that pauses
// observes no later one.
func (f *fields) withoutGeneration() *fields {
	object := maps.Clone(f.object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "generation")
		object["metadata"] = metadata
	}
	return &fields{kind: f.kind, object: object}
}

// suspended assesses an object by a verdict that it is idle, which its status may contradict. Then it is Reconciling, and what the status
// says is quoted. The status of one that is stopped is as if it had failed. A suspended one has not begun, but may have failed before. A
// paused one goes on without its controller, so it should be as if it were not paused.
func suspended(s *fields, ctx Context, idle Assessment) Assessment {
	words := splitWords(idle.Reason)
	if !suspendReasons.hasAny(words) && !pauseReasons.hasAny(words) {
		return idle
	}
	before := scanStatus(s.withoutGeneration(), ctx).verdict()
	if before.Status.IsFault() || before.Status == Reconciling && pauseReasons.hasAny(words) {
		idle.Status, idle.Message = Reconciling, quote(idle.Message, before.Message)
	}
	return idle
}
