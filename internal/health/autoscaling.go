package health

import (
	"cmp"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// autoscalingRules has the rules of autoscalers.
var autoscalingRules = map[schema.GroupKind]rule{
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: autoscaler,
}

// autoscaler assesses a HorizontalPodAutoscaler by whether it can scale. ScalingLimited is no fault, because the limits
// are declared.
//
// Source: conditions AbleToScale and ScalingActive of autoscaling/v2, which autoscaling/v1 has in the annotation
// autoscaling.alpha.kubernetes.io/conditions; https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
func autoscaler(s *fields, ctx Context) Assessment {
	if observed, ok := s.generation("status", "observedGeneration"); ok && observed < s.numberOr(0, "metadata", "generation") {
		return notObserved(s)
	}
	able, active := s.scaling("AbleToScale"), s.scaling("ScalingActive")
	switch {
	case able.status == "False":
		a := verdict(Unhealthy, camelReason(able.reason, "UnableToScale"), quote(s.subject()+" cannot scale", able.message))
		a.Since = able.since
		return a
	case active.status == "False" && active.reason == "ScalingDisabled":
		a := verdict(Healthy, "ScalingDisabled", s.subject()+" is idle, because its target is scaled to 0")
		a.Since = active.since
		return a
	case active.status == "False": // new pods have no metrics yet
		return pending(ctx, cmp.Or(active.since, s.created()), binding, Unhealthy, camelReason(active.reason, "ScalingInactive"),
			quote(s.subject()+" does not scale", active.message))
	case active.status == "True" && able.status == "True":
		return healthy
	}
	return pending(ctx, s.created(), binding, Unhealthy, "NotScaledYet", s.subject()+" has not checked its target yet")
}

// scaling returns a condition of an autoscaler of any API version.
func (f *fields) scaling(name string) condition {
	if f.value("status", "conditions") != nil {
		return f.condition(name)
	}
	text, ok := f.table("metadata", "annotations")["autoscaling.alpha.kubernetes.io/conditions"].(string)
	if !ok {
		return condition{}
	}
	var conditions []any
	if err := json.Unmarshal([]byte(text), &conditions); err != nil {
		f.note("metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions")
		return condition{}
	}
	inner := &fields{kind: f.kind, object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	c := inner.condition(name)
	if inner.malformed != "" {
		f.note("metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions")
	}
	return c
}
