package health

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// networkRules has the rules of kinds that route traffic to pods.
var networkRules = map[schema.GroupKind]rule{
	{Kind: "Service"}: service,
	{Group: "networking.k8s.io", Kind: "Ingress"}:      ingress,
	{Group: "extensions", Kind: "Ingress"}:             ingress,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:  byConditionsAlone("Ready"),
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: endpointSlice,
}

// service assesses a Service by its load balancer. Its EndpointSlices are among its dependents.
//
// Source: spec.type and status.loadBalancer of a Service; its condition LoadBalancerPortsError; the Events that the
// service controller writes when a cloud refuses (SyncLoadBalancerFailed).
func service(s *fields, ctx Context) Assessment {
	if s.text("spec", "type") != "LoadBalancer" {
		return healthy
	}
	if c := s.condition("LoadBalancerPortsError"); c.status == "True" {
		a := verdict(Unhealthy, camelReason(c.reason, "LoadBalancerPortsError"),
			quote("the load balancer of "+s.subject()+" does not serve all ports", c.message))
		a.Since = c.since
		return a
	}
	return addressed(s, ctx, "LoadBalancerPending", "the load balancer of "+s.subject()+" has no address yet")
}

// ingress assesses an Ingress by its address, which the controller of its class writes.
//
// Source: status.loadBalancer of an Ingress.
func ingress(s *fields, ctx Context) Assessment {
	return addressed(s, ctx, "AddressPending", s.subject()+" has no address yet: no controller has given it one")
}

// addressed assesses an object that gets its address from a load balancer.
//
// Source: status.loadBalancer.ingress[].{ip,hostname,ports[].error}.
func addressed(s *fields, ctx Context, reason, message string) Assessment {
	found := false
	for _, item := range s.list("status", "loadBalancer", "ingress") {
		point, ok := item.(map[string]any)
		if !ok {
			s.note("status", "loadBalancer", "ingress")
			continue
		}
		if failure := portError(point); failure != "" {
			return verdict(Unhealthy, "PortError", quote(s.subject()+" does not serve all ports", failure))
		}
		for _, name := range []string{"ip", "hostname"} {
			address, ok := point[name].(string)
			if !ok && point[name] != nil {
				s.note("status", "loadBalancer", "ingress")
			}
			found = found || address != ""
		}
	}
	if found {
		return healthy
	}
	if w := ctx.Warning; w.Reason != "" {
		a := verdict(Unhealthy, camelReason(w.Reason, reason), quote(message, w.Message))
		a.Since = s.created()
		return a
	}
	return pending(ctx, s.created(), startup, Unhealthy, reason, message)
}

// portError returns the error of a port that a load balancer cannot serve; empty for none.
func portError(point map[string]any) string {
	ports, _ := point["ports"].([]any)
	for _, item := range ports {
		port, _ := item.(map[string]any)
		if failure, _ := port["error"].(string); failure != "" {
			return fmt.Sprintf("port %v: %s", port["port"], failure)
		}
	}
	return ""
}

// endpointSlice assesses the endpoints of a Service. Endpoints that terminate count as none unless they are ready. An EndpointSlice without
// an owner was created by hand and may be empty.
//
// Source: endpoints[].conditions.ready of an EndpointSlice, which defaults to true, and .terminating; the annotation
// endpoints.kubernetes.io/last-change-trigger-time; https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/
func endpointSlice(s *fields, ctx Context) Assessment {
	endpoints := s.list("endpoints")
	stay := 0 // those that are not terminating
	for _, item := range endpoints {
		endpoint, ok := item.(map[string]any)
		conditions, okay := endpoint["conditions"].(map[string]any)
		if !ok || !okay && endpoint["conditions"] != nil {
			s.note("endpoints")
			stay++
			continue
		}
		if conditions["terminating"] != true {
			stay++
		}
		switch ready := conditions["ready"]; ready {
		case true, nil:
			return healthy
		case false:
		default:
			s.note("endpoints")
		}
	}
	if len(endpoints) == 0 && len(s.list("metadata", "ownerReferences")) == 0 {
		return healthy
	}
	since, ok := moment(s.table("metadata", "annotations")["endpoints.kubernetes.io/last-change-trigger-time"])
	if !ok || since.IsZero() {
		since = s.created()
	}
	if stay == 0 {
		return pending(ctx, since, startup, Down, noEndpoints, noEndpointsMessage)
	}
	return pending(ctx, since, startup, Down, noReadyEndpoints, "no ready endpoints: no pod receives traffic")
}

// byConditionsAlone returns a rule for kinds whose conditions all have to be True.
//
// Source: metav1.Condition, API conventions, "Typical status properties".
func byConditionsAlone(names ...string) rule {
	return func(s *fields, ctx Context) Assessment {
		out := healthy
		for _, name := range names {
			c := s.condition(name)
			switch {
			case c.stale:
				out = notObserved(s)
				continue
			case c.status == "True":
				continue
			case c.status == "":
				return pending(ctx, s.created(), startup, Unhealthy, "Not"+name, s.subject()+" is not "+name+" yet")
			}
			return unmet(s, ctx, name, c)
		}
		return out
	}
}

// unmet assesses an object by a condition that is not True.
func unmet(s *fields, ctx Context, name string, c condition) Assessment {
	message := quote(s.subject()+" is not "+name, c.message)
	reason := camelReason(c.reason, "Not"+name)
	if c.status == "Unknown" || classify(c.reason) == busy {
		return pending(ctx, cmp.Or(c.since, s.created()), startup, Unhealthy, reason, message)
	}
	a := verdict(Unhealthy, reason, message)
	a.Since = c.since
	return a
}
