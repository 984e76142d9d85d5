package health

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterRules has the rules of namespaces and nodes.
var clusterRules = map[schema.GroupKind]rule{
	{Kind: "Namespace"}: namespace,
	{Kind: "Node"}:      node,
}

// namespace assesses a Namespace without a deletionTimestamp.
//
// Source: status.phase of a Namespace.
func namespace(s *fields, ctx Context) Assessment {
	switch phase := s.text("status", "phase"); phase {
	case "", "Active":
		return healthy
	case "Terminating":
		return namespaceTerminating(s, ctx)
	default:
		return verdict(Unknown, camelReason(phase, "Phase"), quote(s.subject()+" has an unknown phase", phase))
	}
}

// namespaceTerminating assesses a Namespace that is being deleted, by its remaining content.
//
// Source: conditions of a Namespace, which the namespace controller writes while it empties it:
// NamespaceDeletionDiscoveryFailure, NamespaceDeletionGroupVersionParsingFailure, NamespaceDeletionContentFailure,
// NamespaceFinalizersRemaining and NamespaceContentRemaining.
func namespaceTerminating(s *fields, ctx Context) Assessment {
	message := s.subject() + " is being deleted"
	reason := "DeletionStuck"
	for _, name := range []string{
		"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
		"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
	} {
		if c := s.condition(name); c.status == "True" {
			message, reason = quote(message, c.message), camelReason(c.reason, name)
			break
		}
	}
	a := pending(ctx, s.time("metadata", "deletionTimestamp"), deletion, Unhealthy, "Terminating", message)
	if a.Status == Unhealthy {
		a.Reason = reason
	}
	return a
}

// node assesses a Node. A new one has some time to become ready, and a cordoned one is Reconciling. Conditions other than
// Ready report faults: the kubelet's pressures and those of a node-problem-detector.
//
// Source: https://kubernetes.io/docs/reference/node/node-status/#condition; spec.unschedulable.
func node(s *fields, ctx Context) Assessment {
	switch c := s.condition("Ready"); c.status {
	case "True":
	case "Unknown":
		a := verdict(Down, camelReason(c.reason, "NodeStatusUnknown"), quote(s.subject()+" is lost", c.message))
		a.Since = c.since
		return a
	case "False":
		if c.reason == "KubeletNotReady" && ctx.Now.Before(s.created().Add(binding)) {
			return pending(ctx, s.created(), binding, Down, c.reason, quote(s.subject()+" is not Ready yet", c.message))
		}
		a := verdict(Down, camelReason(c.reason, "NotReady"), quote(s.subject()+" is not Ready", c.message))
		a.Since = c.since
		return a
	default:
		if created := s.created(); !created.IsZero() {
			return pending(ctx, created, binding, Down, "NotReady", s.subject()+" has not reported that it is Ready")
		}
		return verdict(Unknown, "NoSignal", s.subject()+" has not reported that it is Ready")
	}
	for _, item := range s.list("status", "conditions") {
		c, _ := item.(map[string]any)
		name, _ := c["type"].(string)
		if name == "" || name == "Ready" {
			continue
		}
		if a, bad := nodeFault(s, name); bad {
			return a
		}
	}
	if a, tainted := nodeTainted(s, ctx); tainted {
		return a
	}
	if s.flag("spec", "unschedulable") {
		return verdict(Reconciling, "Cordoned", s.subject()+" is cordoned: it takes no new pods")
	}
	return healthy
}

// nodeTainted assesses a Node that is Ready by the taints that make it unusable; false without such a taint.
//
// Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-out-of-service and
// #node-cloudprovider-kubernetes-io-uninitialized.
func nodeTainted(s *fields, ctx Context) (Assessment, bool) {
	out, found := healthy, false
	for _, item := range s.list("spec", "taints") {
		taint, ok := item.(map[string]any)
		key, isText := taint["key"].(string)
		if !ok || !isText {
			s.note("spec", "taints")
			continue
		}
		switch key {
		case "node.kubernetes.io/out-of-service":
			return verdict(Unhealthy, "OutOfService", s.subject()+" is marked as out of service: its pods are removed"), true
		case "node.cloudprovider.kubernetes.io/uninitialized":
			out, found = pending(ctx, s.created(), binding, Unhealthy, "Uninitialized",
				s.subject()+" waits for the cloud's controller to initialize it"), true
		}
	}
	return out, found
}

func nodeFault(s *fields, name string) (Assessment, bool) {
	c := s.condition(name)
	means := polarity(name)
	if (c.status != "True" || means != bad) && (c.status != "False" || means != good) {
		return Assessment{}, false
	}
	reason, message := camelReason(c.reason, name), quote(s.subject()+" reports "+name, c.message)
	if means == good {
		message = quote(s.subject()+" is not "+name, c.message)
	}
	a := verdict(Unhealthy, reason, message)
	a.Since = c.since
	return a, true
}
