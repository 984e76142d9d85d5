package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gatewayRules has the rules of the Gateway API.
var gatewayRules = func() map[schema.GroupKind]rule {
	all := map[schema.GroupKind]rule{}
	for kind, judge := range map[string]rule{
		"GatewayClass": byConditionsAlone("Accepted"),
		"Gateway":      gateway,
		"ListenerSet":  gateway,
		"HTTPRoute":    route, "GRPCRoute": route, "TLSRoute": route, "TCPRoute": route, "UDPRoute": route,
	} {
		all[schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: kind}] = judge
	}
	all[schema.GroupKind{Group: "gateway.networking.x-k8s.io", Kind: "XListenerSet"}] = gateway
	return all
}()

// gateway assesses a Gateway or a ListenerSet by its own conditions and by those of its listeners.
//
// Source: https://gateway-api.sigs.k8s.io/geps/gep-1364/: Accepted and Programmed of a Gateway; Accepted, Programmed,
// ResolvedRefs, and Conflicted if True, of status.listeners[].
func gateway(s *fields, ctx Context) Assessment {
	own := byConditionsAlone("Accepted", "Programmed")(s, ctx)
	if own.Reason == "Invalid" || own.Reason == "UnsupportedAddress" || own.Reason == "NoResources" {
		own.Status = Down // no part of it is set up
	}
	listeners := s.list("status", "listeners")
	worst, failing := own, 0
	for i, item := range listeners {
		listener, ok := item.(map[string]any)
		if !ok {
			s.note("status", "listeners")
			continue
		}
		a := assessPart(s, ctx, "listener "+nameOf(listener, i), listener["conditions"],
			[]string{"Accepted", "Programmed", "ResolvedRefs"}, []string{"Conflicted"})
		if a.Status == Healthy {
			continue
		}
		if assessPart(s, ctx, "", listener["conditions"], []string{"Accepted", "Programmed"}, nil).Status == Unhealthy {
			failing++
		}
		if worse(a.Status, worst.Status) {
			worst = a
		}
	}
	if failing > 0 && failing == len(listeners) && worst.Status == Unhealthy {
		worst.Status = Down
	}
	return worst
}

// route assesses a route by the conditions that each of its parents writes.
//
// Source: https://gateway-api.sigs.k8s.io/reference/spec/: status.parents[].conditions, of which Accepted and
// ResolvedRefs are to be True, and PartiallyInvalid not.
func route(s *fields, ctx Context) Assessment {
	parents := s.list("status", "parents")
	wanted := len(s.list("spec", "parentRefs"))
	if wanted == 0 {
		return verdict(Unknown, "NoParent", s.subject()+" names no parent to be attached to")
	}
	worst, refused := healthy, 0
	for i, item := range parents {
		parent, ok := item.(map[string]any)
		if !ok {
			s.note("status", "parents")
			continue
		}
		ref, _ := parent["parentRef"].(map[string]any)
		a := assessPart(s, ctx, "parent "+nameOf(ref, i), parent["conditions"],
			[]string{"Accepted", "ResolvedRefs"}, []string{"PartiallyInvalid"})
		if accepted := assessPart(s, ctx, "", parent["conditions"], []string{"Accepted"}, nil); accepted.Status == Unhealthy {
			refused++
		}
		if worse(a.Status, worst.Status) {
			worst = a
		}
	}
	if refused > 0 && refused == len(parents) {
		worst.Status = Down
	}
	if len(parents) < wanted && !worse(worst.Status, Reconciling) {
		return pending(ctx, s.created(), startup, Unhealthy, "NotAttached",
			fmt.Sprintf("%s is attached to %d of %d parents", s.subject(), len(parents), wanted))
	}
	return worst
}

func nameOf(in map[string]any, i int) string {
	if name, ok := in["name"].(string); ok && name != "" {
		return name
	}
	return fmt.Sprint(i + 1)
}

// assessPart assesses a part of an object by its own conditions: the good ones have to be True, the bad ones must not.
func assessPart(s *fields, ctx Context, name string, conditions any, good, bad []string) Assessment {
	inner := &fields{kind: s.kind, object: map[string]any{
		"metadata": s.object["metadata"], "status": map[string]any{"conditions": conditions},
	}}
	defer func() {
		if inner.malformed != "" {
			s.note("conditions of " + name)
		}
	}()
	for _, t := range bad {
		if c := inner.condition(t); c.status == "True" && !c.stale {
			a := verdict(Unhealthy, camelReason(c.reason, t), quote(s.subject()+": "+name+" is "+t, c.message))
			a.Since = c.since
			return a
		}
	}
	worst := healthy
	for _, t := range good {
		c := inner.condition(t)
		if c.status == "True" && !c.stale {
			continue
		}
		a := pending(ctx, s.created(), startup, Unhealthy, "Not"+t, s.subject()+": "+name+" is not "+t+" yet")
		switch {
		case c.stale:
			a = notObserved(s)
		case c.status != "":
			a = unmet(s, ctx, t, c)
			a.Message = quote(s.subject()+": "+name+" is not "+t, c.message)
		}
		if worse(a.Status, worst.Status) {
			worst = a
		}
	}
	return worst
}
