package operators

import (
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

const (
	certificate = "Certificate"
	request     = "CertificateRequest"
	issuer      = "Issuer"
	web         = "web"
	ready       = "Ready"
	isTrue      = "True"
	isFalse     = "False"
	isUnknown   = "Unknown"
)

// certManager has issuers that are self-signed or have an authority of their own. Nothing leaves the machine.
func certManager() Operator {
	const module = "github.com/cert-manager/cert-manager"
	return Operator{
		Name: "cert-manager",
		programs: []program{{
			pin: "cert-manager", module: module, command: ".",
			args: func(p *place) ([]string, error) { return []string{"--kubeconfig=" + p.kubeconfig}, nil },
		}},
		crds: []crds{{pin: "cert-manager", module: module, paths: []string{"deploy/crds/*.yaml"}}},
		resources: []recording.Resource{
			custom(issuer, "cert-manager.io", "v1", "issuers"),
			custom(certificate, "cert-manager.io", "v1", "certificates"),
			custom(request, "cert-manager.io", "v1", "certificaterequests"),
		},
		scenarios: []scenario.Scenario{
			moment("cert-manager-issued", "The certificate is issued and stored in its Secret.", scenario.Healthy,
				all(condition(certificate, web, ready, isTrue, ""), condition(request, "web-1", ready, isTrue, "")),
				part(issuer, "self-signed", scenario.Healthy), part(certificate, web, scenario.Healthy),
				part(request, "web-1", scenario.Healthy)),
			moment("cert-manager-authority", "The authority is issued, and so is the certificate that it signs.", scenario.Healthy,
				all(condition(certificate, web, ready, isTrue, ""), condition(certificate, "authority", ready, isTrue, ""),
					condition(issuer, "authority", ready, isTrue, "")),
				part(issuer, "self-signed", scenario.Healthy), part(issuer, "authority", scenario.Healthy),
				part(certificate, "authority", scenario.Healthy), part(certificate, web, scenario.Healthy),
				part(request, "authority-1", scenario.Healthy), part(request, "web-1", scenario.Healthy)),
			// Nothing is wrong that time would mend: somebody has to create the issuer. For half an hour it counts as in progress,
			// because a user may apply both in any order.
			moment("cert-manager-no-issuer", "The issuer of the certificate does not exist, and its request waits for it.", scenario.Reconciling,
				all(condition(request, "web-1", ready, isFalse, "Pending"), condition(certificate, web, "Issuing", isTrue, "")),
				part(certificate, web, scenario.Reconciling), part(request, "web-1", scenario.Reconciling)),
			moment("cert-manager-no-authority-secret", "The Secret of the authority does not exist, so the issuer can issue nothing.", scenario.Down,
				all(condition(issuer, "authority", ready, isFalse, ""), condition(request, "web-1", ready, isFalse, "Pending")),
				part(issuer, "authority", scenario.Down), part(certificate, web, scenario.Reconciling),
				part(request, "web-1", scenario.Reconciling)),
			moment("cert-manager-invalid-authority", "The Secret of the authority has no certificate in it.", scenario.Down,
				condition(issuer, "authority", ready, isFalse, ""), part(issuer, "authority", scenario.Down)),
			moment("cert-manager-acme-unreachable", "The ACME server does not answer, so the issuer is not registered.", scenario.Down,
				condition(issuer, "acme", ready, isFalse, ""), part(issuer, "acme", scenario.Down)),
		},
	}
}
