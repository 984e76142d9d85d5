package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// TestAdmissionPolicy installs config/default on one API server, and writes workloads as users with different permissions.
// Its subtests run one after the other.
func TestAdmissionPolicy(t *testing.T) {
	t.Parallel()
	target := newInstallTarget(t)
	target.run("apply", "--server-side", "-k", "config/default")
	target.createAuthors()
	target.awaitAdmission("editor", specWith(specSecret), []string{"is forbidden"})
	for _, test := range []struct {
		name string
		run  func(installTarget)
	}{
		{name: "Create_ChecksPermissionsOfAuthor", run: policyChecksCreations},
		{name: "Create_LargeWorkloads", run: policyChecksLargeWorkloads},
		{name: "Create_BuiltInKinds_HaveTheirResources", run: policyKnowsBuiltInKinds},
		{name: "Update_ChecksChangesOfSpec", run: policyChecksUpdates},
		{name: "Write_ChecksNamespacesOfLabels", run: policyChecksLabelNamespaces},
		{name: "Create_EventsOfAgent", run: policyChecksEvents},
		{name: "Overlay_WithNamePrefix_KeepsPolicies", run: policiesKeepTheirNames},
		{name: "Overlay_AddsPlural", run: policyTakesPlurals},
		{name: "Component_LeavesOutPolicy", run: policyCanBeLeftOut},
	} {
		t.Run(test.name, func(t *testing.T) {
			subtest := target
			subtest.T = t
			test.run(subtest)
		})
	}
}

// specSecret is a resource of a spec.
const specSecret = "{version: v1, kind: Secret, name: key, namespace: app-0}"

// authors are the users of the test, each with the rules of a ClusterRole. Those of namespaceAuthors have their rules in the
// namespace app-0 only.
var (
	authors = map[string]rbacv1.PolicyRule{
		"editor":    {},
		"cluster":   {Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		"upstream":  {Verbs: []string{"escalate"}, APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"threeportworkloads"}},
		"auditor":   {Verbs: []string{"get"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		"deployer":  {Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
		"lister":    {Verbs: []string{"list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		"nodes":     {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
		"irregular": {Verbs: []string{"get"}, APIGroups: []string{"widgets.example.com"}, Resources: []string{"data"}},
		"regular": {Verbs: []string{"get"}, APIGroups: []string{"widgets.example.com"}, Resources: []string{
			"gateways", "proxies", "boxes", "branches", "classes", "widgets",
		}},
	}
	namespaceAuthors = map[string]rbacv1.PolicyRule{
		"reader": {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
		"named":  {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"key"}},
		"tenant": {Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	}
)

// createAuthors creates the users' roles. Every user may also write ThreeportWorkloads.
func (i installTarget) createAuthors() {
	i.Helper()
	write := rbacv1.PolicyRule{
		Verbs: []string{"create", "patch", "update"}, APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"threeportworkloads"},
	}
	i.run("create", "namespace", "app-0")
	for user, rule := range authors {
		i.createRole("author-"+user, write, rule)
		i.run("create", "clusterrolebinding", "author-"+user, "--clusterrole=author-"+user, "--user="+user)
	}
	for user, rule := range namespaceAuthors {
		i.createRole("author-"+user, write)
		i.run("create", "clusterrolebinding", "author-"+user, "--clusterrole=author-"+user, "--user="+user)
		i.createRole("author-"+user+"-namespace", rule)
		i.run("create", "rolebinding", "-n", "app-0", "author-"+user, "--clusterrole=author-"+user+"-namespace", "--user="+user)
	}
}

func (i installTarget) createRole(name string, rules ...rbacv1.PolicyRule) {
	i.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, rule := range rules {
		if len(rule.Verbs) > 0 {
			role.Rules = append(role.Rules, rule)
		}
	}
	if _, err := i.client.RbacV1().ClusterRoles().Create(i.Context(), role, metav1.CreateOptions{}); err != nil {
		i.Fatal(err)
	}
}

// impersonate returns the target with the client of a user.
func (i installTarget) impersonate(user string) installTarget {
	i.Helper()
	config := *i.config
	config.Impersonate.UserName = user
	i.client = kubernetes.NewForConfigOrDie(&config)
	return i
}

// awaitAdmission creates a workload as a user in dry runs until the answer is the wanted one: the API server loads policies
// and roles after a moment.
func (i installTarget) awaitAdmission(user, spec string, want []string) {
	i.Helper()
	author := i.impersonate(user)
	var last error
	err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, world.Timeout, true, func(context.Context) (bool, error) {
		last = checkAnswer(author.create(installYAML, installManifest("workload", spec), true), want) //nolint:contextcheck // the context is the test's
		return last == nil, nil
	})
	if err != nil {
		i.Fatalf("the test waited %s for an answer to %s: %v", world.Timeout, user, last)
	}
}

// policyChecksCreations creates workloads as users with different permissions, in dry runs.
func policyChecksCreations(target installTarget) {
	target.Helper()
	secretIn := func(namespace string) string {
		return fmt.Sprintf("{version: v1, kind: Secret, name: key, namespace: %s}", namespace)
	}
	widget := func(kind string) string {
		return fmt.Sprintf("{group: widgets.example.com, version: v1, kind: %s, name: a, namespace: app-0}", kind)
	}
	tests := []struct {
		reason string
		user   string
		spec   string
		want   []string // texts of the error; none: admitted
	}{
		{
			reason: "only the ClusterRole for the CRD",
			user:   "editor",
			spec:   specWith(specSecret),
			want: []string{
				`user "editor" cannot get resource "secrets" "key" in API group "" in the namespace "app-0"`,
				"the author of a ThreeportWorkload needs this permission",
			},
		},
		{reason: "list and watch are the agent's permissions", user: "lister", spec: specWith(specSecret), want: []string{`user "lister" cannot get`}},
		{reason: "no resources", user: "editor", spec: "{workloadType: WorkloadInstance, workloadInstanceId: 1}"},
		{reason: "a Role for Secrets", user: "reader", spec: specWith(specSecret)},
		{
			reason: "a Role for Secrets, and another kind",
			user:   "reader",
			spec:   specWith(specSecret, specConfigMap),
			want:   []string{`user "reader" cannot get resource "configmaps" "conf" in API group "" in the namespace "app-0"`},
		},
		{
			reason: "a Role for Secrets of another namespace",
			user:   "reader",
			spec:   specWith(specSecret, secretIn("app-1")),
			want:   []string{`resource "secrets" "key" in API group "" in the namespace "app-1"`},
		},
		{
			reason: "a namespace that the agent gives a default",
			user:   "reader",
			spec:   specWith(secretIn(`""`)),
			want:   []string{`resource "secrets" "key" in API group "" at the cluster scope`},
		},
		{
			reason: "all groups, which a wildcard in a Role matches",
			user:   "tenant",
			spec:   specWith(`{group: "*", version: v1, kind: Secret, name: key, namespace: app-0}`),
			want:   []string{"workloadResourceInstances[0].group", "should match"},
		},
		{reason: "a Role for the name", user: "named", spec: specWith(specSecret)},
		{
			reason: "a Role for another name",
			user:   "named",
			spec:   specWith(specSecret, "{version: v1, kind: Secret, name: other, namespace: app-0}"),
			want:   []string{`resource "secrets" "other"`},
		},
		{reason: "cluster-admin", user: "cluster", spec: specWith(secretIn(`""`), specDeployment)},
		{reason: "upstream with the verb escalate", user: "upstream", spec: specWith(specSecret, specDeployment)},
		{reason: "get on everything", user: "auditor", spec: specWith(specSecret, specDeployment)},
		{
			reason: "every permission in a namespace",
			user:   "tenant",
			spec:   specWith(specSecret, specDeployment, widget("Anything"), "{version: v1, kind: Namespace, name: app-0}"),
		},
		{
			reason: "the namespace of another tenant",
			user:   "tenant",
			spec:   specWith("{version: v1, kind: Namespace, name: app-1, namespace: app-0}"),
			want:   []string{`resource "namespaces" "app-1" in API group "" in the namespace "app-1"`},
		},
		{
			reason: "a cluster-scoped object with a namespace",
			user:   "tenant",
			spec:   specWith("{version: v1, kind: Node, name: node-0, namespace: app-0}"),
			want:   []string{`resource "nodes" "node-0" in API group "" at the cluster scope`},
		},
		{
			reason: "regular plurals",
			user:   "regular",
			spec:   specWith(widget("Gateway"), widget("Proxy"), widget("Box"), widget("Branch"), widget("Class"), widget("WIDGET")),
		},
		{
			reason: "an irregular plural",
			user:   "irregular",
			spec:   specWith(widget("Datum")),
			want:   []string{`resource "datums"`, `in API group "widgets.example.com"`},
		},
	}
	for _, tt := range tests {
		err := target.impersonate(tt.user).create(installYAML, installManifest("workload", tt.spec), true)
		if err = checkAnswer(err, tt.want); err != nil {
			target.Errorf("%s: %s\n%v", tt.reason, tt.spec, err)
		}
	}
}

// The API server limits the cost of a policy, which depends on the number of resources: see config/admission/policy.yaml.
func policyChecksLargeWorkloads(target installTarget) {
	target.Helper()
	const scopes = 20 // the maximum of the policy
	tests := []struct {
		reason    string
		user      string
		resources int
		namespace func(n int) int
		version   func(n int) int // nil for one version
		want      []string
	}{
		{reason: "the last scope follows the others", user: "deployer", resources: installResources, namespace: func(n int) int { return min(n, scopes-1) }},
		{reason: "scopes of the same size", user: "deployer", resources: installResources, namespace: func(n int) int { return n % scopes }},
		{
			reason:    "one scope too many",
			user:      "deployer",
			resources: installResources,
			namespace: func(n int) int { return n % (scopes + 1) },
			want:      []string{"more than 20 combinations of group, version, kind and namespace"},
		},
		{
			reason:    "many scopes too many",
			user:      "deployer",
			resources: installResources,
			namespace: func(n int) int { return n },
			want:      []string{"more than 20 combinations of group, version, kind and namespace"},
		},
		{
			reason:    "many versions of one kind: the agent would watch each",
			user:      "deployer",
			resources: installResources,
			namespace: func(int) int { return 0 },
			version:   func(n int) int { return n % (scopes + 1) },
			want:      []string{"more than 20 combinations of group, version, kind and namespace"},
		},
		{reason: "get on everything", user: "auditor", resources: installResources, namespace: func(n int) int { return n }},
		{reason: "upstream", user: "upstream", resources: installResources, namespace: func(n int) int { return n }},
		{
			reason:    "the last scope is forbidden",
			user:      "tenant",
			resources: installResources,
			namespace: func(n int) int { return n / (installResources - 1) },
			want:      []string{`user "tenant" cannot get resource "deployments" in API group "apps" in the namespace "app-1"`},
		},
		{reason: "checks by name", user: "tenant", resources: scopes, namespace: func(int) int { return 0 }},
		{reason: "checks by kind", user: "tenant", resources: scopes + 1, namespace: func(int) int { return 0 }},
	}
	for _, tt := range tests {
		wl := installWorkload("many", tt.resources, databaseID)
		for n := range wl.Spec.WorkloadResourceInstances {
			wl.Spec.WorkloadResourceInstances[n].Namespace = fmt.Sprintf("app-%d", tt.namespace(n))
			if tt.version != nil {
				wl.Spec.WorkloadResourceInstances[n].Version = fmt.Sprintf("v%d", tt.version(n)+1)
			}
		}
		raw, err := json.Marshal(wl)
		if err != nil {
			target.Fatal(err)
		}
		err = target.impersonate(tt.user).create(installJSON, string(raw), true)
		if err = checkAnswer(err, tt.want); err != nil {
			target.Errorf("%s: %v", tt.reason, err)
		}
	}
}

// policyKnowsBuiltInKinds lists each kind of Kubernetes as users with two kinds of roles: one for the resource, and one for
// everything in a namespace. The first has to be admitted, and the second only if the kind is namespaced.
func policyKnowsBuiltInKinds(target installTarget) {
	target.Helper()
	served, err := target.client.Discovery().ServerPreferredResources()
	if err != nil {
		target.Fatalf("discover the kinds: %v", err)
	}
	role := []rbacv1.PolicyRule{{
		Verbs: []string{"create"}, APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"threeportworkloads"},
	}, { // for the namespace of a cluster-scoped object
		Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"},
	}}
	type builtIn struct {
		spec       string
		namespaced bool
	}
	var kinds []builtIn
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			target.Fatalf("discover the kinds: %v", err)
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			role = append(role, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{version.Group}, Resources: []string{resource.Name}})
			kinds = append(kinds, builtIn{namespaced: resource.Namespaced, spec: specWith(fmt.Sprintf(
				"{group: %q, version: %s, kind: %s, name: any, namespace: app-0}", version.Group, version.Version, resource.Kind))})
		}
	}
	if len(kinds) < 40 {
		target.Errorf("the API server serves %d kinds, want more than 40", len(kinds))
	}
	target.createRole("author-every", role...)
	target.run("create", "clusterrolebinding", "author-every", "--clusterrole=author-every", "--user=every")
	target.awaitAdmission("every", specWith(specSecret), nil)
	for _, kind := range kinds {
		if err := target.impersonate("every").create(installYAML, installManifest("kind", kind.spec), true); err != nil {
			target.Errorf("%s: the policy checks another resource: %v", kind.spec, err)
		}
		var want []string
		if !kind.namespaced {
			want = []string{`user "tenant" cannot get`}
		}
		err := target.impersonate("tenant").create(installYAML, installManifest("kind", kind.spec), true)
		if err := checkAnswer(err, want); err != nil {
			target.Errorf("%s: namespaced is %v: %v", kind.spec, kind.namespaced, err)
		}
	}
}

// policyChecksUpdates changes a workload of an administrator as other users.
func policyChecksUpdates(target installTarget) {
	target.Helper()
	if err := target.create(installYAML, installManifest("updated", specWith(specConfigMap)), false); err != nil {
		target.Fatal(err)
	}
	if err := target.create(installYAML, installManifest("readable", specWith(specSecret)), false); err != nil {
		target.Fatal(err)
	}
	resources := func(specs ...string) string {
		return fmt.Sprintf("{spec: {workloadResourceInstances: [%s]}}", strings.Join(specs, ", "))
	}
	tests := []struct {
		reason   string
		user     string
		workload string
		patch    string
		want     []string
	}{
		{
			reason: "a resource that the user may not get", user: "editor", workload: "updated", patch: resources(specConfigMap, specSecret),
			want: []string{`user "editor" cannot get`},
		},
		{
			reason: "all resources of a changed list are checked", user: "reader", workload: "updated", patch: resources(specConfigMap, specSecret),
			want: []string{`user "reader" cannot get resource "configmaps"`},
		},
		{
			reason: "another instance would get the objects", user: "editor", workload: "updated", patch: "{spec: {workloadInstanceId: 2}}",
			want: []string{`user "editor" cannot get resource "configmaps"`},
		},
		{reason: "a resource that the user may get", user: "reader", workload: "readable", patch: "{spec: {workloadInstanceId: 2}}"},
		{reason: "labels", user: "editor", workload: "updated", patch: "{metadata: {labels: {a: b}}}"},
		{
			reason: "annotations", user: "editor", workload: "updated",
			patch: `{metadata: {annotations: {control-plane.threeport.io/retry-rejected: "1"}}}`,
		},
		{
			reason: "the agent's finalizer", user: installUser, workload: "updated",
			patch: "{metadata: {finalizers: [control-plane.threeport.io/threeport-workload-finalizer]}}",
		},
		{
			reason: "the agent removes its finalizer", user: installUser, workload: "updated", patch: "{metadata: {finalizers: null}}",
		},
		{
			reason: "the agent's status", user: installUser, workload: "updated/status", patch: "{status: {message: a}}",
		},
	}
	for _, tt := range tests {
		author := target.impersonate(tt.user)
		err := author.client.RESTClient().Patch(types.MergePatchType).AbsPath(installWorkloads + "/" + tt.workload).
			Body(mergePatch(target, tt.patch)).Do(target.Context()).Error()
		if err := checkAnswer(err, tt.want); err != nil {
			target.Errorf("%s: %v", tt.reason, err)
		}
	}
}

// policyChecksLabelNamespaces creates and changes workloads whose label counts in the namespaces of others: the status shows the Pods
// that have it.
func policyChecksLabelNamespaces(target installTarget) {
	target.Helper()
	const helm, plain = "{workloadType: HelmWorkloadInstance, workloadInstanceId: 1}", "{workloadType: WorkloadInstance, workloadInstanceId: 1}"
	const noPods = `cannot list resource "pods" in API group "" `
	helmWith := func(resource string) string {
		return "{workloadType: HelmWorkloadInstance, workloadInstanceId: 1, workloadResourceInstances: [" + resource + "]}"
	}
	many := make([]string, 0, 21)
	for i := range cap(many) {
		many = append(many, fmt.Sprint("app-", i))
	}
	for _, tt := range []struct {
		reason, user, spec, annotation string
		want                           []string
	}{
		{reason: "the namespace of another user", user: "tenant", spec: plain, annotation: "app-1", want: []string{`user "tenant" ` + noPods + `in the namespace "app-1"`}},
		{reason: "one of several namespaces", user: "tenant", spec: plain, annotation: "app-0, app-1", want: []string{noPods + `in the namespace "app-1"`}},
		{reason: "the own namespace", user: "tenant", spec: plain, annotation: " app-0,,app-0 "},
		{reason: "no permission for Pods", user: "reader", spec: plain, annotation: "app-0", want: []string{noPods}},
		{reason: "too many namespaces", user: "lister", spec: plain, annotation: strings.Join(many, ","), want: []string{"more than 20 combinations"}},
		{reason: "many namespaces", user: "lister", spec: plain, annotation: strings.Join(many[:20], ",")},
		{reason: "a namespace of a cluster-scoped object", user: "nodes", spec: specWith("{version: v1, kind: Node, name: a, namespace: app-1}"), want: []string{noPods + `in the namespace "app-1"`}},
		{reason: "a cluster-scoped object", user: "nodes", spec: specWith("{version: v1, kind: Node, name: a}")},
		{
			reason: "a namespace of a Namespace", user: "tenant", spec: specWith("{version: v1, kind: Namespace, name: app-0, namespace: app-1}"),
			want: []string{noPods + `in the namespace "app-1"`},
		},
		{reason: "Helm without a namespace", user: "tenant", spec: helm, want: []string{noPods + "at the cluster scope"}},
		{reason: "Helm with a cluster-scoped resource", user: "nodes", spec: helmWith("{version: v1, kind: Node, name: a}"), want: []string{noPods + "at the cluster scope"}},
		{reason: "Helm with an annotation", user: "tenant", spec: helm, annotation: "app-0"},
		{reason: "Helm with a namespace", user: "reader", spec: helmWith(specSecret)},
		{reason: "Helm of a lister", user: "lister", spec: helm},
		{reason: "upstream", user: "upstream", spec: helm},
		{reason: "upstream, annotated", user: "upstream", spec: plain, annotation: "app-1"},
	} {
		manifest := installManifest("labels", tt.spec)
		if tt.annotation != "" {
			manifest = strings.Replace(manifest, "metadata: {", fmt.Sprintf("metadata: {annotations: {control-plane.threeport.io/namespaces: %q}, ", tt.annotation), 1)
		}
		if err := checkAnswer(target.impersonate(tt.user).create(installYAML, manifest, true), tt.want); err != nil {
			target.Errorf("%s: %v\n%s", tt.reason, err, manifest)
		}
	}

	if err := target.create(installYAML, installManifest("labelled", plain), false); err != nil {
		target.Fatal(err)
	}
	for _, tt := range []struct {
		reason, annotation string
		want               []string
	}{
		{reason: "another namespace", annotation: `"app-1"`, want: []string{noPods + `in the namespace "app-1"`}},
		{reason: "the own namespace", annotation: `"app-0"`},
		{reason: "none", annotation: "null"},
	} {
		patch := fmt.Sprintf("{metadata: {annotations: {control-plane.threeport.io/namespaces: %s}}}", tt.annotation)
		err := target.impersonate("tenant").client.RESTClient().Patch(types.MergePatchType).AbsPath(installWorkloads + "/labelled").
			Body(mergePatch(target, patch)).Do(target.Context()).Error()
		if err := checkAnswer(err, tt.want); err != nil {
			target.Errorf("an update to %s: %v", tt.reason, err)
		}
	}
}

// policyChecksEvents creates Events as the agent and as another controller, in dry runs.
func policyChecksEvents(target installTarget) {
	target.Helper()
	target.createRole("events", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}})
	const prefixed = "system:serviceaccount:east:east-threeport-agent" // by an overlay with a prefix of names
	target.run("create", "clusterrolebinding", "events", "--clusterrole=events", "--user=controller", "--user="+prefixed)
	const workload = "control-plane.threeport.io/v1alpha1"
	create := func(user, namespace, apiVersion, kind, objectNamespace string) error {
		_, err := target.impersonate(user).client.EventsV1().Events(namespace).Create(target.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "web.1", Namespace: namespace}, EventTime: metav1.NowMicro(),
			ReportingController: "threeport-agent", ReportingInstance: "threeport-agent-0", Action: "Assess", Reason: "Down", Type: "Warning",
			Regarding: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: "web", Namespace: objectNamespace},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	refused := []string{"the agent may write Events about ThreeportWorkloads only"}
	// The API server loads roles and policies after a moment.
	err := wait.PollUntilContextTimeout(target.Context(), 100*time.Millisecond, world.Timeout, true, func(context.Context) (bool, error) {
		return create("controller", "app-0", "v1", "Pod", "app-0") == nil &&
			checkAnswer(create(installUser, "app-0", "v1", "Pod", "app-0"), refused) == nil, nil
	})
	if err != nil {
		target.Fatalf("the policy did not take effect within %s", world.Timeout)
	}
	for _, tt := range []struct {
		reason, user, namespace, apiVersion, kind, objectNamespace string
		want                                                       []string
	}{
		{reason: "a ThreeportWorkload", user: installUser, namespace: "default", apiVersion: workload, kind: "ThreeportWorkload"},
		{reason: "a Pod", user: installUser, namespace: "app-0", apiVersion: "v1", kind: "Pod", objectNamespace: "app-0", want: refused},
		{reason: "another kind of the group", user: installUser, namespace: "default", apiVersion: workload, kind: "Other", want: refused},
		{reason: "the kind of another group", user: installUser, namespace: "default", apiVersion: "v1", kind: "ThreeportWorkload", want: refused},
		{reason: "another namespace", user: installUser, namespace: "kube-system", apiVersion: workload, kind: "ThreeportWorkload", want: refused},
		{reason: "a Pod, as an agent with another name", user: prefixed, namespace: "app-0", apiVersion: "v1", kind: "Pod", objectNamespace: "app-0", want: refused},
		{reason: "a ThreeportWorkload, as an agent with another name", user: prefixed, namespace: "default", apiVersion: workload, kind: "ThreeportWorkload"},
		{reason: "another controller", user: "controller", namespace: "app-0", apiVersion: "v1", kind: "Pod", objectNamespace: "app-0"},
	} {
		if err := checkAnswer(create(tt.user, tt.namespace, tt.apiVersion, tt.kind, tt.objectNamespace), tt.want); err != nil {
			target.Errorf("%s: %v", tt.reason, err)
		}
	}
}

// policiesKeepTheirNames builds an overlay that changes all names. Its bindings have to name its policies. Its Deployment has to use a
// ServiceAccount to which the policy for Events applies: see policyChecksEvents.
func policiesKeepTheirNames(target installTarget) {
	target.Helper()
	built := target.run("kustomize", "internal/e2e/testdata/name-prefix")
	for _, line := range []string{
		"  policyName: east-threeport-workloads\n", "  policyName: east-threeport-agent-events\n", "  name: east-threeport-workloads\n",
		"  name: east-threeport-agent-events\n", "      serviceAccountName: east-threeport-agent\n",
	} {
		if !strings.Contains(built, line) {
			target.Errorf("the overlay lacks %q", line)
		}
	}
}

// policyTakesPlurals applies an overlay that adds an irregular plural.
func policyTakesPlurals(target installTarget) {
	target.Helper()
	target.run("apply", "--server-side", "-k", "internal/e2e/testdata/admission-plurals")
	target.awaitAdmission("irregular", specWith("{group: widgets.example.com, version: v1, kind: Datum, name: a, namespace: app-0}"), nil)
}

// mergePatch returns a patch in YAML's flow style as JSON.
func mergePatch(target installTarget, patch string) []byte {
	target.Helper()
	raw, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		target.Fatal(err)
	}
	return raw
}

// policyCanBeLeftOut builds an overlay for Kubernetes without the API of the policy.
func policyCanBeLeftOut(target installTarget) {
	target.Helper()
	const group = "admissionregistration.k8s.io/v1"
	if built := target.run("kustomize", "config/default"); strings.Count(built, "apiVersion: "+group) != 4 {
		target.Errorf("config/default has %d objects of %s, want two policies and their bindings", strings.Count(built, "apiVersion: "+group), group)
	}
	if built := target.run("kustomize", "internal/e2e/testdata/no-admission-policy"); strings.Contains(built, "apiVersion: "+group) {
		target.Errorf("the overlay still has objects of %s:\n%s", group, built)
	}
}
