package kubectl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// printedRoles decodes the output of rbac.
func printedRoles(t *testing.T, out string) map[string]rbacv1.Role {
	t.Helper()
	roles := map[string]rbacv1.Role{}
	for _, document := range strings.Split(out, "---\n")[1:] {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatalf("rbac printed %s: %v", document, err)
		}
		roles[strings.Trim(role.Kind+" "+role.Namespace, " ")] = role
	}
	return roles
}

// grants reports whether rules permit a verb.
func grants(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
	})
}

const rbacFile = `
apiVersion: v1
kind: ConfigMap
metadata: {name: skipped}
---
apiVersion: control-plane.threeport.io/v1alpha1
kind: ThreeportWorkload
metadata: {name: shop}
spec:
  workloadType: WorkloadInstance
  workloadInstanceId: 7
  workloadResourceInstances:
  - {group: example.com, version: v1, kind: Engine, name: e, namespace: app-0}
  - {group: later.example.org, version: v1, kind: Gadget, name: g, namespace: app-0}
  - {version: v1, kind: Service, name: web, namespace: app-1}
  - {version: v1, kind: Secret, name: key, namespace: app-1}
  - {group: scheduling.k8s.io, version: v1, kind: PriorityClass, name: high}
  - {group: "*", version: v1, kind: Secret, name: key, namespace: app-0}
  - {version: v1, kind: "*", name: all, namespace: app-0}
`

func writeRBACFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "workloads.yaml")
	if err := os.WriteFile(file, []byte(rbacFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRBAC_File_PrintsLabelledClusterRole(t *testing.T) {
	r := call(t, "rbac", "-f", writeRBACFile(t))
	r.want(t, exitNotHealthy,
		"# The ServiceAccount threeport-agent-system/threeport-agent lacks:",
		"#   list, watch engines.example.com in namespace app-0: ThreeportWorkload shop lists Engine app-0/e",
		"# The cluster does not serve Gadget.later.example.org: its resource name gadgets.later.example.org is a guess.",
		`# ThreeportWorkload shop lists the kind "Secret" of the group "*", which cannot exist: it is left out.`,
		`# ThreeportWorkload shop lists the kind "*" of the group "", which cannot exist: it is left out.`,
		"# 1 listed Secret left out: --secrets includes Secrets")
	role, ok := printedRoles(t, r.out)["ClusterRole"]
	if !ok || role.Labels["rbac.threeport.io/aggregate-to-agent"] != "true" || role.Name != "threeport-agent-workload-shop" {
		t.Fatalf("rbac printed %s, want a labelled ClusterRole", r.out)
	}
	for _, watched := range []struct{ group, resource string }{
		{"example.com", "engines"},
		{"later.example.org", "gadgets"},
		{"", "services"},
		{"scheduling.k8s.io", "priorityclasses"},
		{"", "pods"},
		{"", "events"},
		{"apps", "replicasets"},
		{"batch", "jobs"},
		{"discovery.k8s.io", "endpointslices"}, // of a Service
	} {
		if !grants(role.Rules, "list", watched.group, watched.resource) || !grants(role.Rules, "watch", watched.group, watched.resource) {
			t.Errorf("the role does not grant list and watch of %s.%s: %+v", watched.resource, watched.group, role.Rules)
		}
	}
	if grants(role.Rules, "list", "", "secrets") || grants(role.Rules, "list", "*", "secrets") {
		t.Error("the role grants Secrets without --secrets")
	}
	role = printedRoles(t, call(t, "rbac", "-f", writeRBACFile(t), "--secrets").out)["ClusterRole"]
	if !grants(role.Rules, "list", "", "secrets") {
		t.Error("the role does not grant Secrets with --secrets")
	}
}

func TestRBAC_Namespaced_PrintsRolesAndBindings(t *testing.T) {
	r := call(t, "rbac", "-f", writeRBACFile(t), "--namespaced", "--agent-namespace", "agents", "--agent-service-account", "reader")
	r.want(t, exitNotHealthy, "# The ServiceAccount agents/reader lacks:", "name: reader", "# The ServiceAccount agents/reader does not exist.")
	roles := printedRoles(t, r.out)
	if len(roles) != 5 {
		t.Errorf("rbac printed %d objects, want a Role and a RoleBinding for two namespaces and a ClusterRole: %s", len(roles), r.out)
	}
	if rules := roles["Role app-0"].Rules; !grants(rules, "watch", "example.com", "engines") || grants(rules, "list", "", "services") {
		t.Errorf("the rules of namespace app-0 are %+v, want those of its resources", rules)
	}
	if rules := roles["ClusterRole"].Rules; !grants(rules, "watch", "scheduling.k8s.io", "priorityclasses") || grants(rules, "watch", "", "pods") {
		t.Errorf("the rules of the ClusterRole are %+v, want those of cluster-scoped resources", rules)
	}
}

func TestRBAC_Granted_ExitsZero(t *testing.T) {
	role := create(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: rbac-granted}, rules: [
{apiGroups: ["", example.com, parts.example.com, apps, batch], resources: [configmaps, engines, pods, events, replicasets, jobs], verbs: [list, watch]}]}`)
	create(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: rbac-granted},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s},
subjects: [{kind: ServiceAccount, namespace: threeport-agent-system, name: threeport-agent}]}`, role.GetName())
	engine := create(t, `{apiVersion: example.com/v1, kind: Engine, metadata: {name: v8, namespace: default}}`)
	workload(t, "granted", "", "{group: example.com, version: v1, kind: Engine, name: v8, namespace: default}")
	call(t, "rbac", "granted").want(t, exitHealthy, "has all permissions", "name: threeport-agent-workload-granted")

	// A kind between the listed resource and its Pods.
	piston := create(t, `{apiVersion: parts.example.com/v1, kind: Piston, metadata: {name: p, namespace: default, ownerReferences: [
{apiVersion: example.com/v1, kind: Engine, name: v8, uid: %s}]}}`, engine.GetUID())
	create(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: rbac-below, namespace: default, ownerReferences: [
{apiVersion: parts.example.com/v1, kind: Piston, name: p, uid: %s}]}}`, piston.GetUID())
	r := call(t, "rbac", "granted")
	r.want(t, exitNotHealthy, "#   list pistons.parts.example.com in namespace default: pistons.parts.example.com p is below a listed resource")
	if rules := printedRoles(t, r.out)["ClusterRole"].Rules; !grants(rules, "list", "parts.example.com", "pistons") {
		t.Errorf("the rules are %+v, want the kind below the custom resource", rules)
	}
	all := call(t, "rbac")
	all.want(t, exitNotHealthy, "name: threeport-agent-listed-kinds")
}

func TestRBAC_WrongInput(t *testing.T) {
	file := writeRBACFile(t)
	call(t, "rbac", "none").want(t, exitUsage, `there is no ThreeportWorkload "none"`)
	call(t, "rbac", "-f", file, "-f", file).want(t, exitUsage, "--role-name is required for 2 chosen ThreeportWorkloads")
	call(t, "rbac", "-f", file, "--role-name", "A B").want(t, exitUsage, `--role-name: "A B" is not a name`)
	call(t, "rbac", "-f", file, "--agent-namespace", "").want(t, exitUsage, `--agent-namespace: "" is not a name`)
	call(t, "rbac", "-f", filepath.Join("testdata", "input", "crds.yaml")).want(t, exitUsage, "there are no ThreeportWorkloads in")
	invokeAt(t.Context(), time.Now, "", "rbac", "-f", file, "--kubeconfig", shared.nobody).
		want(t, exitCluster, "review the permissions of the agent", "ask for that permission")
}

func TestRBAC_Comments_HaveOneLine(t *testing.T) {
	text := strings.ReplaceAll(rbacFile, "kind: Gadget", `kind: "Gadget\nrules: []"`)
	out := invokeAt(t.Context(), time.Now, text, "rbac", "-f", "-", "--kubeconfig", shared.kubeconfig).out
	if strings.Contains(out, "\nrules: []") {
		t.Errorf("a name in the file adds a line to the output:\n%s", out)
	}
}
