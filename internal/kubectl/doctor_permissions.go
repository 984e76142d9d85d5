package kubectl

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// permissions has the permissions that the agent lacks, each as a phrase: "list pods in namespace app".
type permissions struct {
	agent serviceAccount
	// base are those of config/rbac, which the agent needs whatever it watches.
	base []string
	// workloads are those that the ThreeportWorkloads need.
	workloads []string
	// incomplete says which permissions were not determined.
	incomplete []string
	skipped    string // why none was reviewed
}

// basePermissions are the permissions that config/rbac grants for the work of the agent itself.
var basePermissions = []struct {
	verbs     string
	group     string
	resource  string // RESOURCE or RESOURCE/SUBRESOURCE
	name      string // of the only object
	namespace bool   // in the namespace of the agent, and not in the cluster
}{
	{verbs: "list watch patch", group: v1alpha1.GroupVersion.Group, resource: "threeportworkloads"},
	{verbs: "patch", group: v1alpha1.GroupVersion.Group, resource: "threeportworkloads/status"},
	{verbs: "create patch", group: "events.k8s.io", resource: "events"},
	{verbs: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews"},
	{verbs: "list", resource: "namespaces", name: "kube-system"},
	{verbs: "create", group: "coordination.k8s.io", resource: "leases", namespace: true},
	{verbs: "get update", group: "coordination.k8s.io", resource: "leases", name: heartbeatLease, namespace: true},
}

// readPermissions reviews the permissions of the agent. Without the permission to do so, it says why it did not.
func readPermissions(ctx context.Context, cluster *connection, in *installation) permissions {
	out := permissions{agent: in.account()}
	r, err := newReviewer(cluster, out.agent)
	if err == nil {
		err = out.reviewBase(ctx, r)
	}
	if err == nil && len(in.workloads.items) > 0 {
		err = out.reviewWorkloads(ctx, cluster, r, in.workloads.items)
	}
	switch {
	case apierrors.IsForbidden(err):
		out.skipped = "you lack create subjectaccessreviews.authorization.k8s.io"
	case err != nil:
		out.skipped = err.Error()
	}
	return out
}

func (p *permissions) reviewBase(ctx context.Context, r *reviewer) error {
	for _, base := range basePermissions {
		name, subresource, _ := strings.Cut(base.resource, "/")
		attributes := authorizationv1.ResourceAttributes{Group: base.group, Resource: name, Subresource: subresource, Name: base.name}
		where := ""
		if base.namespace {
			attributes.Namespace, where = p.agent.namespace, inNamespace(p.agent.namespace)
		}
		var missing []string
		for verb := range strings.FieldsSeq(base.verbs) {
			attributes.Verb = verb
			ok, err := r.allowed(ctx, attributes)
			if err != nil {
				return err
			}
			if !ok {
				missing = append(missing, verb)
			}
		}
		if len(missing) > 0 {
			what := schema.GroupResource{Group: base.group, Resource: base.resource}
			p.base = append(p.base, strings.TrimSpace(strings.Join(missing, ", ")+" "+what.String()+" "+base.name)+where)
		}
	}
	return nil
}

// reviewWorkloads reviews the permissions that `kubectl threeport rbac` prints.
func (p *permissions) reviewWorkloads(ctx context.Context, cluster *connection, r *reviewer, list []v1alpha1.ThreeportWorkload) error {
	c, err := newNeedCollector(cluster, false)
	if err != nil {
		return err
	}
	if err := c.collect(ctx, list); err != nil {
		return err
	}
	needs := c.sorted()
	if err := r.review(ctx, needs); err != nil {
		return err
	}
	for _, n := range needs {
		if n.isMissing() {
			p.workloads = append(p.workloads, fmt.Sprintf("%s %s (%s)", strings.Join(n.missing, ", "), n.access, n.reason))
		}
	}
	p.incomplete = c.takeIncomplete()
	return nil
}

// checkPermissions compares the permissions of the agent with those of config/rbac and of the workloads.
func checkPermissions(in *installation) []finding {
	p := &in.permissions
	if in.workloads.notServed {
		return nil // without the CRD there is no agent
	}
	var out []finding
	if len(p.base) > 0 {
		out = append(out, finding{
			Severity: severityError,
			Message:  fmt.Sprintf("The ServiceAccount %s lacks %s for its own work: %s.", p.agent, many(len(p.base), "permission"), firstOf(p.base)),
			Action:   applyConfiguration + ". If the agent has another ServiceAccount, bind the roles of config/rbac to it.",
			Link:     "docs/permissions.md#clusterroles",
		})
	}
	if len(p.workloads) > 0 {
		out = append(out, finding{
			Severity: severityError,
			Message: fmt.Sprintf("The ServiceAccount %s lacks %s for the ThreeportWorkloads: %s.",
				p.agent, many(len(p.workloads), "permission"), firstOf(p.workloads)),
			Action: fmt.Sprintf("Read `kubectl threeport rbac%s`, and pipe it to `kubectl apply --server-side -f -`.", p.agent.flags()),
			Link:   runbook + "kind-not-watched",
		})
	}
	if p.skipped != "" {
		return append(out, notChecked("The permissions of the agent: "+p.skipped+"."))
	}
	if len(p.incomplete) > 0 {
		out = append(out, notChecked("Some permissions of the agent: "+firstOf(p.incomplete)+"."))
	}
	if len(out) == 0 {
		out = append(out, okay("The ServiceAccount %s has all permissions for its own work and %s.", p.agent, many(len(in.workloads.items), "ThreeportWorkload")))
	}
	return out
}

// flags returns the flags of rbac that name a ServiceAccount; empty for that of config/default.
func (s serviceAccount) flags() (out string) {
	if s.namespace != agentNamespace {
		out += " --agent-namespace " + s.namespace
	}
	if s.name != agentAccount {
		out += " --agent-service-account " + s.name
	}
	return out
}
