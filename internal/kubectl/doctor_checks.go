package kubectl

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/config/crd"
)

// doctorChecks are all checks, in the order of findings with the same status. A check without a subject returns an empty list.
var doctorChecks = []struct {
	name string
	run  func(*installation) []finding
}{
	{"crd", checkCRD},
	{"agent", checkDeployments},
	{"pods", checkPods},
	{"flags", checkFlags},
	{"version", checkVersion},
	{"heartbeat", checkHeartbeat},
	{"leader", checkLeader},
	{"statuses", checkStatuses},
	{"delivery", checkDelivery},
	{"dropped-events", checkDropped},
	{"watching", checkWatching},
	{"durability", checkDurable},
	{"shared-objects", checkShared},
	{"deletions", checkDeletions},
	{"permissions", checkPermissions},
	{"admission-policy", checkAdmission},
	{"certificates", checkCertificates},
}

// firstOf returns the first few of some phrases and the number of the others.
func firstOf(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// checkCRD compares the CustomResourceDefinition with that of the plugin.
func checkCRD(in *installation) []finding {
	const upgrade = "Apply config/crd of the agent's version: `kubectl apply --server-side -k config/crd`."
	switch {
	case in.workloads.notServed && len(in.crd.items) == 0:
		return []finding{{
			Severity: severityError, Message: "The cluster does not serve ThreeportWorkloads: the agent is not installed.",
			Action: "Install the agent, or choose another cluster with --context.", Link: connectingAgents,
		}}
	case len(in.crd.items) == 0:
		return []finding{notChecked("The cluster serves ThreeportWorkloads. Their schema: " + in.crd.skipped + ".")}
	case in.workloads.notServed:
		return []finding{{
			Severity: severityError, Message: "The CustomResourceDefinition " + workloadCRD + " exists, but the cluster does not serve " + v1alpha1.GroupVersion.String() + ".",
			Action: "Read its conditions: `kubectl describe crd " + workloadCRD + "`. " + upgrade,
		}}
	}
	var expected unstructured.Unstructured
	if err := yaml.Unmarshal(crd.Manifest, &expected.Object); err != nil {
		return []finding{notChecked("The schema of the plugin is invalid: " + err.Error())}
	}
	want, have := schemaFields(expected.Object), schemaFields(in.crd.items[0].Object)
	switch missing, unknown := missingFrom(have, want), missingFrom(want, have); {
	case len(missing) > 0:
		return []finding{{
			Severity: severityWarning,
			Message:  fmt.Sprintf("The CustomResourceDefinition lacks %s of this version: %s. The API server drops their values.", many(len(missing), "field"), firstOf(missing)),
			Action:   upgrade,
		}}
	case len(unknown) > 0:
		return []finding{{
			Severity: severityWarning,
			Message:  fmt.Sprintf("The CustomResourceDefinition has %s that this plugin does not know: %s.", many(len(unknown), "field"), firstOf(unknown)),
			Action:   "Use the plugin of the agent's version.",
		}}
	}
	return []finding{okay("The CustomResourceDefinition has the schema of this version.")}
}

// schemaFields returns the paths of the fields in the schema of v1alpha1, such as "status.lease.name".
func schemaFields(object map[string]any) map[string]bool {
	out := map[string]bool{}
	var walk func(schema map[string]any, path string)
	walk = func(schema map[string]any, path string) {
		if items, ok := schema["items"].(map[string]any); ok {
			walk(items, path+"[]")
		}
		fields, _ := schema["properties"].(map[string]any)
		for name, field := range fields {
			at := strings.TrimPrefix(path+"."+name, ".")
			out[at] = true
			if field, ok := field.(map[string]any); ok {
				walk(field, at)
			}
		}
	}
	versions, _, _ := unstructured.NestedSlice(object, "spec", "versions")
	for _, v := range versions {
		v, ok := v.(map[string]any)
		if !ok || v["name"] != v1alpha1.GroupVersion.Version {
			continue
		}
		if schema, ok, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema"); ok {
			walk(schema, "")
		}
	}
	return out
}

// missingFrom returns the members of another set that a set lacks, sorted.
func missingFrom(set, other map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(other)), func(name string) bool { return set[name] })
}

// checkVersion compares the versions of agent and plugin.
func checkVersion(in *installation) []finding {
	images := in.images()
	switch agent := in.agentVersion(); {
	case agent == "" && len(images) == 0:
		return nil // other checks say that there is no agent
	case agent == "":
		return []finding{notChecked("The version of the agent is not known: its heartbeat names none. Its image is " + firstOf(images) + ".")}
	case agent != in.plugin:
		return []finding{{
			Severity: severityWarning, Message: fmt.Sprintf("The agent has version %s, and this plugin %s.", agent, in.plugin),
			Action: "Use the plugin of the agent's version, or upgrade the agent.", Link: "docs/operating.md#upgrade",
		}}
	case len(images) > 1:
		return []finding{{
			Severity: severityWarning, Message: "The Pods of the agent have different images: " + firstOf(images) + ".",
			Action: "Wait for the end of the rollout, or look for a second Deployment.",
		}}
	}
	return []finding{okay("Agent and plugin have version %s.", in.plugin)}
}

// images returns the images of the agent's Pods, or without any those of its Deployments.
func (in *installation) images() []string {
	out := map[string]bool{}
	for i := range in.pods.items {
		out[agentContainer(&in.pods.items[i].Spec).Image] = true
	}
	if len(out) == 0 {
		for i := range in.deployments.items {
			out[agentContainer(&in.deployments.items[i].Spec.Template.Spec).Image] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// checkAdmission looks for the policy that limits what a ThreeportWorkload may list.
func checkAdmission(in *installation) []finding {
	switch {
	case in.policies.skipped != "" || in.bindings.skipped != "":
		return []finding{notChecked("The policy for authors of ThreeportWorkloads: " + joinReasons(in.policies.skipped, in.bindings.skipped) + ".")}
	case in.workloads.notServed:
		return nil
	}
	const risk = "A user who may write ThreeportWorkloads can read objects through the agent that RBAC forbids to the user"
	for i := range in.policies.items {
		policy := &in.policies.items[i]
		if restrictsWorkloads(policy) && slices.ContainsFunc(in.bindings.items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == policy.Name && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny)
		}) {
			return []finding{okay("The ValidatingAdmissionPolicy %s restricts the authors of ThreeportWorkloads.", policy.Name)}
		}
	}
	f := finding{
		Severity: severityWarning, Message: risk + ": no ValidatingAdmissionPolicy restricts it.",
		Action: "Apply config/admission: `kubectl apply --server-side -k config/admission`.", Link: "docs/permissions.md#authors-of-threeportworkloads",
	}
	if in.policies.notServed {
		f.Message = risk + ": this cluster has no ValidatingAdmissionPolicies."
		f.Action = "Upgrade Kubernetes to 1.30, or permit the writing of ThreeportWorkloads only to users who may read everything."
	}
	return []finding{f}
}

// restrictsWorkloads reports whether a policy is about ThreeportWorkloads. An overlay may change its name.
func restrictsWorkloads(p *admissionv1.ValidatingAdmissionPolicy) bool {
	if p.Spec.MatchConstraints == nil {
		return false
	}
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.APIGroups, v1alpha1.GroupVersion.Group) && slices.Contains(r.Resources, workloads.Resource)
	})
}

// expiresSoon is how long before its end a certificate is a warning.
const expiresSoon = 14 * 24 * time.Hour

// checkCertificates looks at the ends of the agent's certificates.
func checkCertificates(in *installation) []finding {
	var out []finding
	for i := range in.certificates {
		out = append(out, in.certificates[i].finding(in.now))
	}
	return out
}

func (c *certificateFile) finding(now time.Time) finding {
	f := finding{Link: runbook + "credentials-expire", Action: "Renew the Secret. The agent reads the new file without a restart."}
	what := fmt.Sprintf("tls.crt of the Secret %s (--%s)", c.secret, c.flag)
	switch {
	case c.skipped != "":
		return notChecked(what + ": " + c.skipped + ".")
	case c.missing != "":
		f.Severity, f.Message = severityError, what+": "+c.missing+"."
		f.Action, f.Link = "Create the Secret. The Pods of the agent wait for it.", connectingAgents
		return f
	}
	first := slices.MinFunc(c.certificates, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	end := first.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case now.After(first.NotAfter):
		f.Severity, f.Message = severityError, fmt.Sprintf("%s expired at %s, %s ago.", what, end, ago(first.NotAfter, now))
	case now.Before(first.NotBefore):
		f.Severity, f.Message = severityError, fmt.Sprintf("%s is valid only from %s.", what, first.NotBefore.UTC().Format(time.RFC3339))
	case now.Add(expiresSoon).After(first.NotAfter):
		f.Severity, f.Message = severityWarning, fmt.Sprintf("%s expires at %s, in %s.", what, end, ago(now, first.NotAfter))
	default:
		return okay("%s is valid until %s.", what, end)
	}
	return f
}
