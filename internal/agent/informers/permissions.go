package informers

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// missingPermissions has the missing permission of each wanted scope; empty if none is missing.
type missingPermissions map[string]string

// permits reports whether a scope is wanted, and no permission for it is missing.
func (p missingPermissions) permits(namespace string) bool {
	missing, wanted := p[namespace]
	return wanted && missing == ""
}

// missingPermission returns the permission that the agent lacks to watch a resource in a namespace or ("") in the cluster, and how
// to grant it; empty if none is missing.
func (c *Clients) missingPermission(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (string, error) {
	for _, verb := range []string{"list", "watch"} {
		review, err := c.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("ask for permission to %s %s: %w", verb, gvr.GroupResource(), err)
		}
		if review.Status.Allowed {
			continue
		}
		where := "in the whole cluster"
		if namespace != "" {
			where = "in namespace " + namespace
		}
		return fmt.Sprintf("permission missing: %s %s %s; %s", verb, gvr.GroupResource(), where, howToGrant(gvr.GroupResource())), nil
	}
	return "", nil
}

// howToGrant names the ClusterRole or the component of config/ that permits the agent to watch a resource.
func howToGrant(resource schema.GroupResource) string {
	switch {
	case resource == schema.GroupResource{Resource: "secrets"}:
		return "Secrets are checked only with the component config/components/secrets"
	case isBuiltIn(resource.Group):
		return "the ClusterRole threeport-agent-built-in-kinds grants it"
	}
	return "a ClusterRole with the label rbac.threeport.io/aggregate-to-agent=true grants it: kubectl threeport rbac prints one"
}

// isBuiltIn reports whether an API group belongs to Kubernetes itself.
func isBuiltIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}
