package health

import (
	"cmp"
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
	{Kind: "Endpoints"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
	{Group: "coordination.k8s.io", Kind: "Lease"},
	{Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Group: "networking.k8s.io", Kind: "IngressClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "node.k8s.io", Kind: "RuntimeClass"},
}

// Object judges a listed object by itself. A kind that is not known is judged by the conventions for
// status conditions and observedGeneration; one that gives no signal is Unknown, and so is one that looks
// Healthy but of which something that was read is malformed.
//
// Source: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
func Object(kind schema.GroupKind, obj runtime.Object) Verdict {
	o, ok := obj.(metav1.Object)
	if !ok {
		return Verdict{Unknown, "NoSignal", kind.Kind + " cannot be read"}
	}
	if o.GetDeletionTimestamp() != nil {
		return Verdict{Reconciling, "Terminating", kind.Kind + " is being deleted"}
	}
	u, ok := obj.(*unstructured.Unstructured)
	switch {
	case !ok && slices.Contains(existence, kind):
		return Verdict{Status: Healthy}
	case !ok:
		return Verdict{Unknown, "NoSignal", "only the metadata of " + kind.Kind + " is watched"}
	}
	s := &fields{object: u.Object}
	if s.value("metadata", "deletionTimestamp") != nil {
		s.note("metadata", "deletionTimestamp") // it cannot be read as a time
	}
	v := judge(s, kind)
	if v.Status == Healthy && s.malformed != "" {
		return Verdict{Unknown, "Malformed", kind.Kind + " has a malformed " + s.malformed}
	}
	return v
}

func judge(s *fields, kind schema.GroupKind) Verdict {
	if slices.Contains(existence, kind) {
		return Verdict{Status: Healthy}
	}
	observed, ok := s.number("status", "observedGeneration")
	if ok && observed < s.numberOr(0, "metadata", "generation") {
		return notObserved(kind.Kind)
	}
	switch kind.Group + "/" + kind.Kind {
	case "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet":
		if !ok {
			return notObserved(kind.Kind)
		}
		return pods(s, kind.Kind)
	case "batch/Job":
		return job(s)
	case "batch/CronJob":
		return Verdict{Status: Healthy}
	case "/Service":
		return service(s)
	case "/PersistentVolumeClaim", "/PersistentVolume":
		return volume(s, kind.Kind)
	case "/Namespace":
		return namespace(s)
	}
	return byConditions(s, kind.Kind)
}

func notObserved(kind string) Verdict {
	return Verdict{Reconciling, "SpecNotObserved", "the controller of " + kind + " has not seen the latest spec yet"}
}

func job(s *fields) Verdict {
	for _, failed := range []string{"Failed", "FailureTarget"} {
		if c := s.condition(failed); c.status == "True" {
			return Verdict{Down, cmp.Or(c.reason, "JobFailed"), cmp.Or(c.message, "the Job failed")}
		}
	}
	if s.condition("Complete").status == "True" {
		return Verdict{Status: Healthy, Reason: Completed}
	}
	return Verdict{Reconciling, "Running", "the Job has not completed yet"}
}

func service(s *fields) Verdict {
	if s.text("spec", "type") != "LoadBalancer" {
		return Verdict{Status: Healthy}
	}
	ingress, _ := s.value("status", "loadBalancer", "ingress").([]any)
	for _, item := range ingress {
		point, _ := item.(map[string]any)
		for _, name := range []string{"ip", "hostname"} {
			if address, _ := point[name].(string); address != "" {
				return Verdict{Status: Healthy}
			}
		}
	}
	return Verdict{Reconciling, "LoadBalancerPending", "the load balancer has no address yet"}
}

func volume(s *fields, kind string) Verdict {
	switch phase := s.text("status", "phase"); phase {
	case "Bound", "Available":
		return Verdict{Status: Healthy}
	case "Lost", "Failed":
		return Verdict{Down, phase, kind + " is " + phase}
	default:
		return Verdict{Reconciling, cmp.Or(phase, "Pending"), kind + " is not bound yet"}
	}
}

func namespace(s *fields) Verdict {
	if phase := s.text("status", "phase"); phase != "" && phase != "Active" {
		return Verdict{Reconciling, phase, "Namespace is " + phase}
	}
	return Verdict{Status: Healthy}
}

// byConditions reads the conditions that controllers commonly write. Bad news counts first, and what is
// about an earlier generation is no news.
func byConditions(s *fields, kind string) Verdict {
	stale := false
	for _, bad := range []string{"Stalled", "Failed", "Degraded"} {
		c := s.condition(bad)
		if c.status == "True" && !c.stale {
			return Verdict{Unhealthy, cmp.Or(c.reason, bad), cmp.Or(c.message, kind+" is "+bad)}
		}
		stale = stale || c.stale
	}
	good := Verdict{Unknown, "NoSignal", kind + " has no status that tells its health"}
	for _, name := range []string{"Ready", "Available", "Healthy", "Synced", "Established", "Accepted", "Programmed"} {
		switch c := s.condition(name); {
		case c.stale:
			stale = true
		case c.status == "False":
			return Verdict{Unhealthy, cmp.Or(c.reason, "Not"+name), cmp.Or(c.message, kind+" is not "+name)}
		case c.status == "Unknown":
			return Verdict{Reconciling, cmp.Or(c.reason, name+"Unknown"), cmp.Or(c.message, kind+" is not "+name+" yet")}
		case c.status == "True":
			good = Verdict{Status: Healthy}
		}
	}
	if stale {
		return notObserved(kind)
	}
	return unlessBusy(s, kind, good)
}

// unlessBusy returns a verdict, unless the controller says that it is at work. Progressing is no such word
// where it stays True once a rollout succeeded, and another condition tells of the success.
func unlessBusy(s *fields, kind string, v Verdict) Verdict {
	for _, busy := range []string{"Reconciling", "Progressing"} {
		if c := s.condition(busy); c.status == "True" && (busy == "Reconciling" || v.Status != Healthy) {
			return Verdict{Reconciling, cmp.Or(c.reason, busy), cmp.Or(c.message, kind+" is "+busy)}
		}
	}
	return v
}
