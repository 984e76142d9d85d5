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
	for _, name := range []string{"state", "desiredState", "powerState"} {
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

// suspended assesses a suspended object. It is Reconciling; the earlier fault is only quoted.
func suspended(s *fields, ctx Context, reason string) Assessment {
	message := s.subject() + " is " + strings.ToLower(reason)
	if before := scanStatus(s, ctx).verdict(); worse(before.Status, Reconciling) {
		message = quote(message, before.Message)
	}
	return verdict(Reconciling, reason, message)
}
