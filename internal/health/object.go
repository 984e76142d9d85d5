package health

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// existence lists the kinds that have nothing to run: they are Healthy when they are there.
var existence = []schema.GroupKind{
	{Kind: "ConfigMap"},
	{Kind: "Secret"},
	{Kind: "ServiceAccount"},
	{Kind: "LimitRange"},
	{Kind: "ResourceQuota"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Group: "networking.k8s.io", Kind: "IngressClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
}

// Object judges a listed object by itself. A kind that is not known is judged by the conventions for
// status conditions and observedGeneration; one that gives no signal is Unknown.
//
// Source: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
func Object(kind schema.GroupKind, obj runtime.Object) Verdict {
	if o, ok := obj.(metav1.Object); ok && o.GetDeletionTimestamp() != nil {
		return Verdict{Reconciling, "Terminating", kind.Kind + " is being deleted"}
	}
	if slices.Contains(existence, kind) {
		return Verdict{Status: Healthy}
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return Verdict{Unknown, "NoSignal", "only the metadata of " + kind.Kind + " is watched"}
	}
	s := fields{u.Object}
	if observed, ok := s.number("status", "observedGeneration"); ok && observed < u.GetGeneration() {
		return Verdict{Reconciling, "SpecNotObserved", "the controller of " + kind.Kind + " has not seen the latest spec yet"}
	}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return deployment(s)
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return replicas(s, kind.Kind, s.numberOr(1, "spec", "replicas"), s.numberOr(0, "status", "readyReplicas"))
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return replicas(s, kind.Kind, s.numberOr(0, "status", "desiredNumberScheduled"), s.numberOr(0, "status", "numberReady"))
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return job(s)
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return Verdict{Status: Healthy}
	case schema.GroupKind{Kind: "Service"}:
		return service(s)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"}:
		return volume(s, kind.Kind)
	case schema.GroupKind{Kind: "Namespace"}:
		return Verdict{Status: Healthy}
	}
	return byConditions(s, kind.Kind)
}

func deployment(s fields) Verdict {
	if status, reason, message := s.condition("Progressing"); status == "False" {
		return Verdict{Unhealthy, cmp.Or(reason, "NotProgressing"), cmp.Or(message, "the rollout does not progress")}
	}
	if status, reason, message := s.condition("ReplicaFailure"); status == "True" {
		return Verdict{Unhealthy, cmp.Or(reason, "ReplicaFailure"), cmp.Or(message, "pods cannot be created")}
	}
	want := s.numberOr(1, "spec", "replicas")
	if updated := s.numberOr(0, "status", "updatedReplicas"); updated < want {
		return Verdict{Reconciling, "RollingOut", fmt.Sprintf("Deployment has %d of %d replicas updated", updated, want)}
	}
	return replicas(s, "Deployment", want, s.numberOr(0, "status", "availableReplicas"))
}

func replicas(s fields, kind string, want, ready int64) Verdict {
	if _, ok := s.number("status", "observedGeneration"); !ok {
		return Verdict{Reconciling, "SpecNotObserved", "the controller of " + kind + " has not seen it yet"}
	}
	if ready < want {
		return Verdict{Reconciling, "ReplicasNotReady", fmt.Sprintf("%s has %d of %d replicas ready", kind, ready, want)}
	}
	return Verdict{Status: Healthy}
}

func job(s fields) Verdict {
	for _, failed := range []string{"Failed", "FailureTarget"} {
		if status, reason, message := s.condition(failed); status == "True" {
			return Verdict{Down, cmp.Or(reason, "JobFailed"), cmp.Or(message, "the Job failed")}
		}
	}
	if status, _, _ := s.condition("Complete"); status == "True" {
		return Verdict{Status: Healthy}
	}
	return Verdict{Reconciling, "Running", "the Job has not completed yet"}
}

func service(s fields) Verdict {
	ingress, _, _ := unstructured.NestedSlice(s.object, "status", "loadBalancer", "ingress")
	if s.text("spec", "type") == "LoadBalancer" && len(ingress) == 0 {
		return Verdict{Reconciling, "LoadBalancerPending", "the load balancer has no address yet"}
	}
	return Verdict{Status: Healthy}
}

func volume(s fields, kind string) Verdict {
	switch phase := s.text("status", "phase"); phase {
	case "Bound", "Available":
		return Verdict{Status: Healthy}
	case "Lost", "Failed":
		return Verdict{Down, phase, kind + " is " + phase}
	default:
		return Verdict{Reconciling, cmp.Or(phase, "Pending"), kind + " is not bound yet"}
	}
}

// byConditions reads the conditions that controllers commonly write. Bad news counts first.
func byConditions(s fields, kind string) Verdict {
	for _, bad := range []string{"Stalled", "Failed", "Degraded"} {
		if status, reason, message := s.condition(bad); status == "True" {
			return Verdict{Unhealthy, cmp.Or(reason, bad), cmp.Or(message, kind+" is "+bad)}
		}
	}
	good := false
	for _, name := range []string{"Ready", "Available", "Healthy", "Synced", "Established", "Accepted", "Programmed"} {
		switch status, reason, message := s.condition(name); status {
		case "False":
			return Verdict{Unhealthy, cmp.Or(reason, "Not"+name), cmp.Or(message, kind+" is not "+name)}
		case "Unknown":
			return Verdict{Reconciling, cmp.Or(reason, name+"Unknown"), cmp.Or(message, kind+" is not "+name+" yet")}
		case "True":
			good = true
		}
	}
	for _, busy := range []string{"Reconciling", "Progressing"} {
		if status, reason, message := s.condition(busy); status == "True" && !good {
			return Verdict{Reconciling, cmp.Or(reason, busy), cmp.Or(message, kind+" is "+busy)}
		}
	}
	if good {
		return Verdict{Status: Healthy}
	}
	return Verdict{Unknown, "NoSignal", kind + " has no status that tells its health"}
}

// fields reads an object that may be malformed: what has another type than expected is as if absent.
type fields struct{ object map[string]any }

func (f fields) text(path ...string) string {
	s, _, _ := unstructured.NestedString(f.object, path...)
	return s
}

func (f fields) number(path ...string) (int64, bool) {
	n, ok, err := unstructured.NestedInt64(f.object, path...)
	return n, ok && err == nil
}

func (f fields) numberOr(fallback int64, path ...string) int64 {
	if n, ok := f.number(path...); ok {
		return n
	}
	return fallback
}

// condition returns a status condition's status, reason and message; all empty if there is none.
func (f fields) condition(name string) (status, reason, message string) {
	conditions, _, _ := unstructured.NestedFieldNoCopy(f.object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		if t, _ := c["type"].(string); t != name {
			continue
		}
		status, _ = c["status"].(string)
		reason, _ = c["reason"].(string)
		message, _ = c["message"].(string)
		return status, reason, message
	}
	return "", "", ""
}
