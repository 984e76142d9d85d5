package health

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiextensionsRules has the rules of kinds that extend the API.
var apiextensionsRules = map[schema.GroupKind]rule{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:   customResourceDefinition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:               apiService,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: storageMigration,
}

// customResourceDefinition assesses a CustomResourceDefinition by whether the API server serves its kind.
//
// Source: conditions Established, NamesAccepted, NonStructuralSchema, KubernetesAPIApprovalPolicyConformant and
// Terminating of a CustomResourceDefinition.
func customResourceDefinition(s *fields, ctx Context) Assessment {
	named := s.condition("NamesAccepted")
	if named.status == "False" {
		a := verdict(Down, camelReason(named.reason, "NamesNotAccepted"), quote(s.subject()+" has names that are taken", named.message))
		a.Since = named.since
		if s.condition("Established").status == "True" {
			a.Status = Unhealthy
		}
		return a
	}
	for _, bad := range []string{"NonStructuralSchema", "Terminating"} {
		if c := s.condition(bad); c.status == "True" {
			a := verdict(Unhealthy, camelReason(c.reason, bad), quote(s.subject()+" reports "+bad, c.message))
			a.Since = c.since
			return a
		}
	}
	if c := s.condition("KubernetesAPIApprovalPolicyConformant"); c.status == "False" {
		a := verdict(Unhealthy, camelReason(c.reason, "NotApproved"), quote(s.subject()+" claims a protected group", c.message))
		a.Since = c.since
		return a
	}
	c := s.condition("Established")
	if c.status == "True" {
		return healthy
	}
	return pending(ctx, cmp.Or(c.since, s.created()), binding, Down, camelReason(c.reason, "NotEstablished"),
		quote(s.subject()+" is not served yet", c.message))
}

// apiService assesses an APIService by whether its server is available.
//
// Source: condition Available of an APIService.
func apiService(s *fields, ctx Context) Assessment {
	c := s.condition("Available")
	switch c.status {
	case "True":
		return healthy
	case "False":
		return pending(ctx, s.created(), binding, Down, camelReason(c.reason, "NotAvailable"), quote(s.subject()+" is not available", c.message))
	}
	return pending(ctx, s.created(), binding, Unhealthy, camelReason(c.reason, "NotAvailable"), quote(s.subject()+" is not available yet", c.message))
}

// storageMigration assesses a StorageVersionMigration, which runs to an end.
//
// Source: conditions Running, Succeeded and Failed of a StorageVersionMigration.
func storageMigration(s *fields, _ Context) Assessment {
	if c := s.condition("Failed"); c.status == "True" {
		a := verdict(Down, camelReason(c.reason, "Failed"), quote(s.subject()+" failed", c.message))
		a.Since = c.since
		return a
	}
	if s.condition("Succeeded").status == "True" {
		return Assessment{Verdict: Verdict{Status: Healthy, Reason: Completed}}
	}
	c := s.condition("Running")
	a := verdict(Reconciling, "Running", quote(s.subject()+" has not succeeded yet", c.message))
	a.Since = c.since
	return a
}
