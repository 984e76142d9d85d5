package kubectl

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// reviewer asks the API server which permissions the agent has.
type reviewer struct {
	client  authorizationclient.AuthorizationV1Interface
	agent   serviceAccount
	decided map[authorizationv1.ResourceAttributes]bool
}

func newReviewer(cluster *connection, agent serviceAccount) (*reviewer, error) {
	config, err := cluster.config()
	if err != nil {
		return nil, err
	}
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, clusterFailure("make a client", err)
	}
	return &reviewer{client, agent, map[authorizationv1.ResourceAttributes]bool{}}, nil
}

// allowed reports whether the agent has a permission.
func (r *reviewer) allowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	if known, ok := r.decided[attributes]; ok {
		return known, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + r.agent.namespace + ":" + r.agent.name,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + r.agent.namespace, "system:authenticated"},
		ResourceAttributes: &attributes,
	}}
	got, err := r.client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, clusterFailure("review the permissions of the agent", err)
	}
	r.decided[attributes] = got.Status.Allowed
	return got.Status.Allowed, nil
}

// review finds out which of the needed permissions the agent lacks. A permission in the whole cluster covers every namespace.
func (r *reviewer) review(ctx context.Context, needs []*need) error {
	for _, n := range needs {
		for _, verb := range n.verbs() {
			attributes := authorizationv1.ResourceAttributes{Verb: verb, Group: n.Group, Resource: n.Resource}
			ok, err := r.allowed(ctx, attributes)
			if err == nil && !ok && n.namespace != "" {
				attributes.Namespace = n.namespace
				ok, err = r.allowed(ctx, attributes)
			}
			if err != nil {
				return err
			}
			if !ok {
				n.missing = append(n.missing, verb)
			}
		}
	}
	return nil
}
