package health

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The reasons of an EndpointSlice that is empty, and of one without a ready endpoint.
const (
	noEndpoints      = "NoEndpoints"
	noReadyEndpoints = "NoReadyEndpoints"
)

// PodLabels has the labels of the Pods that a Service selects, or that a workload creates. The zero value is that of an object
// without either.
type PodLabels struct {
	namespace          string
	selector, template map[string]string
}

// PodLabelsOf reads the labels of an object.
//
// Source: spec.selector of a Service, spec.template.metadata.labels of a workload.
func PodLabelsOf(kind schema.GroupKind, obj runtime.Object) PodLabels {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return PodLabels{}
	}
	out := PodLabels{namespace: u.GetNamespace()}
	if kind == serviceKind {
		out.selector, _, _ = unstructured.NestedStringMap(u.Object, "spec", "selector")
	} else {
		out.template, _, _ = unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	}
	return out
}

// Equal reports whether two objects have the same labels.
func (l PodLabels) Equal(other PodLabels) bool {
	return l.namespace == other.namespace && maps.Equal(l.selector, other.selector) && maps.Equal(l.template, other.template)
}

// selects reports whether a Service selects the Pods of a workload.
func (l PodLabels) selects(workload PodLabels) bool {
	if len(l.selector) == 0 || l.namespace != workload.namespace {
		return false
	}
	for key, value := range l.selector {
		if got, ok := workload.template[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// PodCreator is an object that may create Pods, with its verdict.
type PodCreator struct {
	Labels  PodLabels
	Verdict Verdict
}

// IdleEndpoints returns the verdict on the empty EndpointSlices of a Service whose Pods are not wanted: that of a workload that
// it selects, the first by message. It returns false if the Service selects the Pods of no workload, or of one that wants Pods.
func IdleEndpoints(service PodLabels, creators []PodCreator) (idle Verdict, ok bool) {
	for _, c := range creators {
		if !service.selects(c.Labels) {
			continue
		}
		if c.Verdict.Reason != ScaledToZero && c.Verdict.Reason != NoNodeSelected {
			return Verdict{}, false
		}
		if !ok || c.Verdict.Message < idle.Message {
			idle, ok = Verdict{Healthy, c.Verdict.Reason, c.Verdict.Message}, true
		}
	}
	return idle, ok
}

// SetIdle sets the verdict on the empty EndpointSlices of a Service: that of [IdleEndpoints], or zero if they are a fault. It reports
// whether the verdict on the Service may have changed.
func (f *Dependents) SetIdle(idle Verdict) bool {
	if f.idle == idle {
		return false
	}
	var empty []Dependent
	for _, d := range f.byUID {
		if d.Reason == noEndpoints {
			empty = append(empty, d)
		}
	}
	for _, d := range empty {
		f.Remove(d.UID)
	}
	f.idle = idle
	for _, d := range empty {
		f.Set(d)
	}
	return len(empty) > 0
}

// unlessIdle returns the assessment that counts for a dependent: that of an empty EndpointSlice is the given one, unless it is zero.
func (a Assessment) unlessIdle(idle Verdict) Assessment {
	if idle.Status == "" || a.Reason != noEndpoints {
		return a
	}
	return Assessment{Verdict: idle, Subject: a.Subject}
}
