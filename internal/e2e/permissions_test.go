package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// permission is a row of a table of permissions: each verb on each resource.
type permission struct {
	reason      string
	verbs       string
	group       string
	resources   string // RESOURCE or RESOURCE/SUBRESOURCE
	name        string
	namespace   string
	wantAllowed bool
}

// installationPermitsOnlyReading installs the agent, and reviews the permissions of its ServiceAccount.
func installationPermitsOnlyReading(target installTarget) {
	target.Helper()
	target.run("apply", "--server-side", "-k", "config/default")
	target.awaitPermission(permission{verbs: "list", resources: "pods", wantAllowed: true})

	const agentGroup, anyName, elsewhere = "control-plane.threeport.io", "", "app-0"
	target.expectPermissions([]permission{
		{
			reason:      "workloads list objects of built-in kinds",
			verbs:       "list watch",
			resources:   "pods nodes events namespaces",
			name:        anyName,
			wantAllowed: true,
		},
		{
			reason:    "list returns the data of Secrets",
			verbs:     "get list watch",
			resources: "secrets",
			name:      anyName,
		},
		{
			reason:    "list returns the data of Secrets",
			verbs:     "get list watch",
			resources: "secrets",
			name:      anyName,
			namespace: installNamespace,
		},
		{
			reason:    "custom resources need a labelled ClusterRole",
			verbs:     "list watch",
			group:     "widgets.example.com",
			resources: "widgets",
			name:      anyName,
		},
		{
			reason:      "workloads list objects of built-in kinds",
			verbs:       "list watch",
			group:       "apps",
			resources:   "deployments replicasets",
			name:        anyName,
			namespace:   elsewhere,
			wantAllowed: true,
		},
		{
			reason:      "the controller watches its workloads",
			verbs:       "list watch",
			group:       agentGroup,
			resources:   "threeportworkloads",
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
			reason:      "the agent authenticates clients of its metrics",
			verbs:       "create",
			group:       "authentication.k8s.io",
			resources:   "tokenreviews",
			name:        anyName,
			wantAllowed: true,
		},
		{
			reason:      "the agent authorizes clients of its metrics",
			verbs:       "create",
			group:       "authorization.k8s.io",
			resources:   "subjectaccessreviews",
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
			reason:      "the heartbeat is a Lease",
			verbs:       "get update",
			group:       "coordination.k8s.io",
			resources:   "leases",
			name:        "threeport-agent-heartbeat.control-plane.threeport.io",
			namespace:   installNamespace,
			wantAllowed: true,
		},
		{
			reason:    "the leader election writes no Events",
			verbs:     "create patch",
			resources: "events",
			name:      anyName,
			namespace: installNamespace,
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
			verbs:     "create get update delete deletecollection",
			group:     agentGroup,
			resources: "threeportworkloads",
			name:      anyName,
		},
		{
			reason:    "patch is enough for a status",
			verbs:     "create get update delete",
			group:     agentGroup,
			resources: "threeportworkloads/status",
			name:      "any",
		},
		{
			reason:    "the agent writes Events of events.k8s.io only",
			verbs:     "create update patch delete",
			resources: "events",
			name:      anyName,
			namespace: elsewhere,
		},
		{
			reason:      "the agent writes Events about ThreeportWorkloads; an admission policy refuses others",
			verbs:       "create patch",
			group:       "events.k8s.io",
			resources:   "events",
			name:        anyName,
			namespace:   "default",
			wantAllowed: true,
		},
		{
			reason:    "the agent deletes no Events",
			verbs:     "update delete deletecollection",
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
	})
}

// unreadableKinds are the listable kinds of Kubernetes that config/default does not permit, each with the reason.
var unreadableKinds = map[schema.GroupResource]string{
	{Resource: "secrets"}:           "their data; config/components/secrets permits them",
	{Resource: "componentstatuses"}: "they cannot be watched",
}

// installationPermitsBuiltInKinds compares the ClusterRole for built-in kinds with the kinds that the API server serves.
func installationPermitsBuiltInKinds(target installTarget) {
	target.Helper()
	served, err := target.client.Discovery().ServerPreferredResources()
	if err != nil {
		target.Fatalf("discover the kinds: %v", err)
	}
	reviewed := 0
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			target.Fatalf("discover the kinds: %v", err)
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			kind := schema.GroupResource{Group: version.Group, Resource: resource.Name}
			if !slices.Contains(resource.Verbs, "list") || strings.HasSuffix(version.Group, ".threeport.io") {
				continue
			}
			_, unreadable := unreadableKinds[kind]
			target.expectPermissions([]permission{{
				reason: "a kind of Kubernetes", verbs: "list watch", group: kind.Group, resources: kind.Resource, wantAllowed: !unreadable,
			}})
			reviewed++
		}
	}
	if reviewed < 40 {
		target.Errorf("the API server serves %d kinds, want more than 40", reviewed)
	}
}

// installationAggregatesRoles adds labelled ClusterRoles to the installation: one of a user, and those of the components.
func installationAggregatesRoles(target installTarget) {
	target.Helper()
	const group = "widgets.example.com"
	widgets := permission{reason: "a labelled ClusterRole", verbs: "list watch", group: group, resources: "widgets", wantAllowed: true}
	gadgets := permission{reason: "every kind", verbs: "list watch", group: group, resources: "gadgets", wantAllowed: true}
	secrets := permission{reason: "the component secrets", verbs: "list watch", resources: "secrets", wantAllowed: true}
	denied := func(p permission) permission { p.wantAllowed = false; return p }

	target.run("apply", "--server-side", "-f", "internal/e2e/testdata/widgets-role.yaml")
	target.expectPermissions([]permission{denied(widgets)})
	target.run("label", "clusterrole", "widgets", "rbac.threeport.io/aggregate-to-agent=true")
	target.awaitPermission(widgets)
	target.expectPermissions([]permission{denied(gadgets), denied(secrets)})

	target.run("apply", "--server-side", "-f", "config/components/secrets/role.yaml")
	target.awaitPermission(secrets)
	target.expectPermissions([]permission{denied(gadgets)})
	target.run("delete", "clusterrole", "threeport-agent-secrets", "widgets")
	target.awaitPermission(denied(secrets))

	target.run("apply", "--server-side", "-k", "config/threeport")
	target.awaitPermission(gadgets)
	target.awaitPermission(secrets)
	// The API server has filled in the rules; a second installation must not conflict with them.
	target.run("apply", "--server-side", "-k", "config/default")
	target.expectPermissions([]permission{gadgets, secrets})
	target.run("delete", "clusterrole", "threeport-agent-all-kinds", "threeport-agent-secrets")
	target.awaitPermission(denied(gadgets))
	target.awaitPermission(denied(secrets))
}

// installationUpgradesWildcardRole applies config/default over a ClusterRole as it was before the aggregation.
func installationUpgradesWildcardRole(target installTarget) {
	target.Helper()
	const earlier = "internal/e2e/testdata/wildcard-role.yaml"
	gadgets := permission{verbs: "list", group: "widgets.example.com", resources: "gadgets"}
	allowed := gadgets
	allowed.wantAllowed = true
	target.run("delete", "clusterrole", "threeport-agent")
	target.run("apply", "--server-side", "-f", earlier)
	target.awaitPermission(allowed)
	target.run("apply", "--server-side", "-k", "config/default")
	target.awaitPermission(gadgets)
	target.awaitPermission(permission{verbs: "watch", resources: "pods", wantAllowed: true})
}

// installationExtendsUserRoles reviews the permissions of users with the ClusterRoles view, edit and admin.
func installationExtendsUserRoles(target installTarget) {
	target.Helper()
	const group = "control-plane.threeport.io"
	for _, role := range []string{"view", "edit", "admin"} {
		target.run("create", "clusterrolebinding", "test-"+role, "--clusterrole="+role, "--user=test-"+role)
		user := target.as("test-" + role)
		writes := role != "view"
		user.awaitPermission(permission{verbs: "get list watch", group: group, resources: "threeportworkloads", wantAllowed: true})
		if writes {
			user.awaitPermission(permission{verbs: "create delete patch update", group: group, resources: "threeportworkloads", wantAllowed: true})
		}
		user.expectPermissions([]permission{
			{
				reason: "the role " + role, verbs: "create delete patch update", group: group, resources: "threeportworkloads",
				wantAllowed: writes,
			},
			{reason: "the status belongs to the agent", verbs: "patch update", group: group, resources: "threeportworkloads/status"},
		})
	}
}

// awaitPermission waits until the API server decides as the permission wants: RBAC follows a change after a moment.
func (i installTarget) awaitPermission(want permission) {
	i.Helper()
	var last error
	err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, world.Timeout, true, func(ctx context.Context) (bool, error) {
		last = i.review(ctx, want)
		return last == nil, nil
	})
	if err != nil {
		i.Fatalf("the test waited %s for a permission: %v", world.Timeout, last)
	}
}

// expectPermissions reviews permissions.
func (i installTarget) expectPermissions(wanted []permission) {
	i.Helper()
	for _, want := range wanted {
		if err := i.review(i.Context(), want); err != nil {
			i.Error(err)
		}
	}
}

// review returns an error if the API server decides otherwise than the permission wants.
func (i installTarget) review(ctx context.Context, want permission) error {
	for verb := range strings.FieldsSeq(want.verbs) {
		for resource := range strings.FieldsSeq(want.resources) {
			attributes := authorizationv1.ResourceAttributes{Verb: verb, Group: want.group, Name: want.name, Namespace: want.namespace}
			attributes.Resource, attributes.Subresource, _ = strings.Cut(resource, "/")
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: i.user, Groups: i.groups, ResourceAttributes: &attributes,
			}}
			got, err := i.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("review %s %s: %w", verb, resource, err)
			}
			if got.Status.Allowed != want.wantAllowed {
				return fmt.Errorf("%s: %s %s.%s %q in namespace %q: allowed is %v, want %v (%s)",
					want.reason, verb, resource, want.group, want.name, want.namespace, got.Status.Allowed, want.wantAllowed, got.Status.Reason)
			}
		}
	}
	return nil
}

// as returns the target with the reviews of a user.
func (i installTarget) as(user string) installTarget {
	i.user, i.groups = user, []string{"system:authenticated"}
	return i
}
