package e2e

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installationPermitsOnlyReading installs the agent, and reviews the permissions of its ServiceAccount.
func installationPermitsOnlyReading(target installTarget) {
	target.Helper()
	target.run("apply", "--server-side", "-k", "config/default")

	const agentGroup, anyName, elsewhere = "control-plane.threeport.io", "", "app-0"
	tests := []struct {
		reason      string
		verbs       string
		group       string
		resources   string // RESOURCE or RESOURCE/SUBRESOURCE
		name        string
		namespace   string
		wantAllowed bool
	}{
		{
			reason:      "workloads list objects of any kind",
			verbs:       "list watch",
			resources:   "pods secrets nodes events namespaces",
			name:        anyName,
			wantAllowed: true,
		},
		{
			reason:      "workloads list objects of any kind",
			verbs:       "list watch",
			group:       "apps",
			resources:   "deployments replicasets",
			name:        anyName,
			namespace:   elsewhere,
			wantAllowed: true,
		},
		{
			reason:      "kinds may be installed later",
			verbs:       "list watch",
			group:       "widgets.example.com",
			resources:   "widgets",
			name:        anyName,
			wantAllowed: true,
		},
		{
			reason:      "the controller writes statuses",
			verbs:       "patch",
			group:       agentGroup,
			resources:   "threeportworkloads/status",
			name:        "any",
			wantAllowed: true,
		},
		{
			reason:      "the controller adds and removes its finalizer",
			verbs:       "patch",
			group:       agentGroup,
			resources:   "threeportworkloads",
			name:        "any",
			wantAllowed: true,
		},
		{
			reason:      "the agent checks its permissions",
			verbs:       "create",
			group:       "authorization.k8s.io",
			resources:   "selfsubjectaccessreviews",
			name:        anyName,
			wantAllowed: true,
		},
		{
			reason:      "the leader election uses a Lease",
			verbs:       "create",
			group:       "coordination.k8s.io",
			resources:   "leases",
			name:        anyName,
			namespace:   installNamespace,
			wantAllowed: true,
		},
		{
			reason:      "the leader election uses a Lease",
			verbs:       "get update",
			group:       "coordination.k8s.io",
			resources:   "leases",
			name:        installLease,
			namespace:   installNamespace,
			wantAllowed: true,
		},
		{
			reason:      "the leader election writes Events",
			verbs:       "create patch",
			resources:   "events",
			name:        anyName,
			namespace:   installNamespace,
			wantAllowed: true,
		},

		{
			reason:    "the agent never changes a workload",
			verbs:     "create update patch delete deletecollection",
			resources: "pods secrets configmaps services namespaces nodes serviceaccounts",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:    "the agent never changes a workload",
			verbs:     "create update patch delete deletecollection",
			group:     "apps",
			resources: "deployments statefulsets deployments/scale deployments/status",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:    "the agent changes no objects in its own namespace",
			verbs:     "create update patch delete deletecollection",
			resources: "pods secrets configmaps",
			name:      anyName,
			namespace: installNamespace,
		},
		{
			reason:    "upstream owns the list",
			verbs:     "create update delete deletecollection",
			group:     agentGroup,
			resources: "threeportworkloads",
			name:      anyName,
		},
		{
			reason:    "patch is enough for a status",
			verbs:     "create update delete",
			group:     agentGroup,
			resources: "threeportworkloads/status",
			name:      "any",
		},
		{
			reason:    "the agent writes no Events about workloads",
			verbs:     "create update patch delete",
			resources: "events",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:    "the agent writes no Events about workloads",
			verbs:     "create update patch delete",
			group:     "events.k8s.io",
			resources: "events",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:    "other Leases belong to other leaders and to nodes",
			verbs:     "create update patch delete",
			group:     "coordination.k8s.io",
			resources: "leases",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:    "other Leases belong to other leaders and to nodes",
			verbs:     "update patch delete",
			group:     "coordination.k8s.io",
			resources: "leases",
			name:      "other",
			namespace: installNamespace,
		},
		{
			reason:    "the agent must not run commands in pods",
			verbs:     "create",
			resources: "pods/exec pods/attach pods/portforward pods/ephemeralcontainers",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:    "get permits running commands in pods",
			verbs:     "get",
			resources: "pods/exec pods/attach pods/portforward pods/proxy services/proxy nodes/proxy",
			name:      "any",
			namespace: elsewhere,
		},
		{
			reason:    "list is enough to read objects",
			verbs:     "get",
			resources: "secrets configmaps pods",
			name:      "any",
			namespace: elsewhere,
		},
		{
			reason:    "the agent must not impersonate others",
			verbs:     "create",
			resources: "serviceaccounts/token",
			name:      "default",
			namespace: elsewhere,
		},
		{
			reason:    "the agent must not impersonate others",
			verbs:     "impersonate",
			resources: "users groups serviceaccounts",
			name:      anyName,
		},
		{
			reason:    "the agent must not extend its role",
			verbs:     "create update patch bind escalate",
			group:     "rbac.authorization.k8s.io",
			resources: "clusterroles clusterrolebindings roles rolebindings",
			name:      anyName,
		},
		{
			reason:    "the agent installs no CRDs",
			verbs:     "create update patch delete",
			group:     "apiextensions.k8s.io",
			resources: "customresourcedefinitions",
			name:      anyName,
		},
	}
	for _, tt := range tests {
		for verb := range strings.FieldsSeq(tt.verbs) {
			for resource := range strings.FieldsSeq(tt.resources) {
				attributes := authorizationv1.ResourceAttributes{
					Verb: verb, Group: tt.group, Name: tt.name, Namespace: tt.namespace,
				}
				attributes.Resource, attributes.Subresource, _ = strings.Cut(resource, "/")
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               installUser,
					Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + installNamespace, "system:authenticated"},
					ResourceAttributes: &attributes,
				}}
				got, err := target.client.AuthorizationV1().SubjectAccessReviews().Create(target.Context(), review, metav1.CreateOptions{})
				if err != nil {
					target.Fatalf("review %s %s: %v", verb, resource, err)
				}
				if got.Status.Allowed != tt.wantAllowed {
					target.Errorf("%s: %s %s.%s %q in namespace %q: allowed is %v, want %v (%s)",
						tt.reason, verb, resource, tt.group, tt.name, tt.namespace, got.Status.Allowed, tt.wantAllowed, got.Status.Reason)
				}
			}
		}
	}
}
