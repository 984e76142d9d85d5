package health

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// policyRules has the rules of kinds that allow or refuse requests.
var policyRules = map[schema.GroupKind]rule{
	{Group: "policy", Kind: "PodDisruptionBudget"}:                             podDisruptionBudget,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}: admissionPolicy,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:          certificateRequest,
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:              certificateRequest,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                flowSchema,
}

// podDisruptionBudget assesses a PodDisruptionBudget by whether enough pods are healthy. A budget that allows no
// disruption then is as declared.
//
// Source: status.currentHealthy, status.desiredHealthy and the condition DisruptionAllowed of a PodDisruptionBudget,
// whose reason SyncFailed means that the budget cannot be kept.
func podDisruptionBudget(s *fields, ctx Context) Assessment {
	observed, ok := s.generation("status", "observedGeneration")
	if !ok || observed < s.numberOr(0, "metadata", "generation") {
		return notObserved(s)
	}
	c := s.condition("DisruptionAllowed")
	if c.status == "False" && c.reason == "SyncFailed" {
		a := verdict(Unhealthy, c.reason, quote(s.subject()+" cannot be kept", c.message))
		a.Since = c.since
		return a
	}
	have, want := s.numberOr(0, "status", "currentHealthy"), s.numberOr(0, "status", "desiredHealthy")
	if have >= want {
		return healthy
	}
	return pending(ctx, cmp.Or(c.since, s.created()), startup, Unhealthy, "InsufficientPods",
		fmt.Sprintf("%s has %d of the %d healthy pods that it asks for", s.subject(), have, want))
}

// admissionPolicy assesses a ValidatingAdmissionPolicy by whether its expressions fit their types.
//
// Source: status.typeChecking.expressionWarnings of a ValidatingAdmissionPolicy.
func admissionPolicy(s *fields, _ Context) Assessment {
	if observed, ok := s.generation("status", "observedGeneration"); ok && observed < s.numberOr(0, "metadata", "generation") {
		return notObserved(s)
	}
	warnings := s.list("status", "typeChecking", "expressionWarnings")
	if len(warnings) == 0 {
		return healthy
	}
	first, _ := warnings[0].(map[string]any)
	field, _ := first["fieldRef"].(string)
	text, _ := first["warning"].(string)
	return verdict(Unhealthy, "TypeCheckWarning", quote(s.subject()+" has an expression that may fail, "+cmp.Or(field, "at an unknown place"), text))
}

// certificateRequest assesses a request for a certificate.
//
// Source: conditions Approved, Denied, Failed (Issued of a PodCertificateRequest) and the certificate itself in the status.
func certificateRequest(s *fields, ctx Context) Assessment {
	for _, bad := range []string{"Denied", "Failed"} {
		if c := s.condition(bad); c.status == "True" {
			a := verdict(Down, camelReason(c.reason, bad), quote(s.subject()+" is "+bad, c.message))
			a.Since = c.since
			return a
		}
	}
	if s.text("status", "certificate") != "" || s.text("status", "certificateChain") != "" {
		return Assessment{Verdict: Verdict{Status: Healthy, Reason: Completed}}
	}
	if c := s.condition("Approved"); c.status == "True" {
		return pending(ctx, c.since, startup, Unhealthy, "NotIssued", s.subject()+" is approved, and its certificate not issued yet")
	}
	return pending(ctx, s.created(), convergence, Unhealthy, "NotApproved", s.subject()+" waits for somebody to approve it")
}

// flowSchema assesses a FlowSchema.
//
// Source: condition Dangling of a FlowSchema: its priority level does not exist.
func flowSchema(s *fields, _ Context) Assessment {
	if c := s.condition("Dangling"); c.status == "True" {
		a := verdict(Unhealthy, "Dangling", quote(s.subject()+" has no effect", c.message))
		a.Since = c.since
		return a
	}
	return healthy
}
