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

const noEndpointsMessage = "no endpoints: no pod receives traffic"

// PodLabels has the labels of the Pods that a Service selects, or that another object creates. The zero value is that of an object
// without either.
type PodLabels struct {
	namespace          string
	selector, template map[string]string
}

// The labels that [PodLabels] has at most. The agent keeps them for each listed object, and compares those of each Service with those of
// each creator of Pods. Labels of real objects are few and short.
const (
	maxPodLabels     = 32
	maxPodLabelBytes = 4 << 10
)

// PodLabelsOf reads the labels of an object. They are left out beyond the limits. No creator of Pods explains then why a Service has no
// endpoints.
//
// Source: spec.selector of a Service, spec.template.metadata.labels of a creator of Pods.
func PodLabelsOf(kind schema.GroupKind, obj runtime.Object) PodLabels {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return PodLabels{}
	}
	out := PodLabels{namespace: u.GetNamespace()}
	if kind == serviceKind {
		out.selector = boundedLabels(u.Object, "spec", "selector")
	} else {
		out.template = boundedLabels(u.Object, "spec", "template", "metadata", "labels")
	}
	return out
}

// boundedLabels returns the labels of a field, or nil if they exceed the limits or are no texts.
func boundedLabels(obj map[string]any, field ...string) map[string]string {
	found, _, _ := unstructured.NestedFieldNoCopy(obj, field...)
	labels, _ := found.(map[string]any)
	if len(labels) > maxPodLabels {
		return nil
	}
	out, bytes := make(map[string]string, len(labels)), 0
	for key, value := range labels {
		text, ok := value.(string)
		if bytes += len(key) + len(text); !ok || bytes > maxPodLabelBytes {
			return nil
		}
		out[key] = text
	}
	return out
}

// Equal reports whether two objects have the same labels.
func (l PodLabels) Equal(other PodLabels) bool {
	return l.namespace == other.namespace && maps.Equal(l.selector, other.selector) && maps.Equal(l.template, other.template)
}

// selects reports whether a Service selects the Pods of a creator.
func (l PodLabels) selects(creator PodLabels) bool {
	if len(l.selector) == 0 || l.namespace != creator.namespace {
		return false
	}
	for key, value := range l.selector {
		if got, ok := creator.template[key]; !ok || got != value {
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

// ExpectedVerdict returns the verdict on the empty EndpointSlices of a Service that the creators of its Pods explain. Creators that have
// completed do not count. If the others want no Pods, it is the verdict of the first one by message. If some of them are Reconciling, so
// is the Service. Otherwise, or if the Service selects no Pods of a creator, the verdict is zero.
func ExpectedVerdict(service PodLabels, creators []PodCreator) (expected Verdict) {
	for _, c := range creators {
		switch v := c.Verdict; {
		case !service.selects(c.Labels) || v.HasCompleted():
		case v.Status == Reconciling:
			expected = Verdict{Reconciling, noEndpoints, noEndpointsMessage}
		case !v.wantsNoPod():
			return Verdict{}
		case expected.Status == "" || expected.Status == Healthy && v.Message < expected.Message:
			expected = v
		}
	}
	return expected
}

// SetExpected sets the verdict of [ExpectedVerdict] on the empty EndpointSlices of a Service. It reports whether the verdict on the
// Service may have changed.
func (ds *Dependents) SetExpected(expected Verdict) bool {
	if ds.expected == expected {
		return false
	}
	var empty []Dependent
	for uid, kept := range ds.byUID {
		if d := kept.dependent(uid); d.Reason == noEndpoints {
			empty = append(empty, d)
		}
	}
	for _, d := range empty {
		ds.Remove(d.UID)
	}
	ds.expected = expected
	for _, d := range empty {
		ds.Set(d)
	}
	return len(empty) > 0
}

// orExpected returns the assessment that counts for a dependent: that of an empty EndpointSlice is the expected one, unless it is
// zero.
func (a Assessment) orExpected(expected Verdict) Assessment {
	if expected.Status == "" || a.Reason != noEndpoints {
		return a
	}
	return Assessment{Verdict: expected, Subject: a.Subject}
}
