package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// What config/default installs, and for whom.
const (
	installNamespace = "threeport-agent-system"
	installUser      = "system:serviceaccount:threeport-agent-system:threeport-agent"
	installLease     = "threeport-agent.control-plane.threeport.io"
	installCRD       = "threeportworkloads.control-plane.threeport.io"
	installWorkloads = "/apis/control-plane.threeport.io/v1alpha1/threeportworkloads"
)

// installTarget is an API server of the test's own, with nothing in it.
type installTarget struct {
	*testing.T
	client  *kubernetes.Clientset
	kubectl []string // the command, with its flags
}

func newInstallTarget(t *testing.T) installTarget {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Components: cluster.APIOnly(), Log: t.Output()})
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	binaries, err := cluster.FindBinaries(t.Context(), t.Output(), cluster.Kubectl)
	if err != nil {
		t.Fatalf("find kubectl: %v", err)
	}
	return installTarget{
		T:       t,
		client:  kubernetes.NewForConfigOrDie(c.Config()),
		kubectl: []string{binaries[cluster.Kubectl], "--kubeconfig", c.Kubeconfig(), "--cache-dir", t.TempDir()},
	}
}

// run runs kubectl, which has to succeed without a warning, and returns what it prints.
func (i installTarget) run(args ...string) string {
	i.Helper()
	args = append(slices.Clone(i.kubectl[1:]), args...)
	cmd := exec.CommandContext(i.Context(), i.kubectl[0], args...)
	cmd.Dir = filepath.Join("..", "..")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		i.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	if strings.Contains(stderr.String(), "Warning:") {
		i.Errorf("kubectl %s: the API server warns:\n%s", strings.Join(args, " "), &stderr)
	}
	return stdout.String()
}

// installCRD makes ThreeportWorkloads known to the API server.
func (i installTarget) installCRD() {
	i.Helper()
	i.run("apply", "--server-side", "-k", "config/crd")
	i.run("wait", "--for=condition=Established", "--timeout=30s", "crd/"+installCRD)
}

// The media types of what create posts.
const (
	installYAML = "application/yaml"
	installJSON = "application/json"
)

// create posts a ThreeportWorkload as it is.
func (i installTarget) create(mediaType, manifest string, dryRun bool) error {
	request := i.client.RESTClient().Post().AbsPath(installWorkloads).
		SetHeader("Content-Type", mediaType).Body([]byte(manifest))
	if dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Do(i.Context()).Error()
}

// installRefusal tells how an answer differs from what is wanted: acceptance, or a refusal with all these texts.
func installRefusal(err error, want []string) error {
	switch {
	case len(want) == 0 && err != nil:
		return fmt.Errorf("refused: %w", err)
	case len(want) > 0 && err == nil:
		return fmt.Errorf("accepted, want a refusal that says %q", want)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("the refusal does not say %q: %w", text, err)
		}
	}
	return nil
}

func TestInstallationIsAccepted(t *testing.T) {
	target := newInstallTarget(t)
	// What the rest needs to be there, even in a dry run.
	target.run("apply", "--server-side", "-f", "config/manager/namespace.yaml", "-f", "config/controlplane/namespace.yaml")
	target.installCRD()

	for _, config := range []string{
		"config/default", "config/samples", "config/controlplane", "config/controlplane-postgres", "internal/e2e/testdata/agent-token",
	} {
		objects := strings.Count("\n"+target.run("kustomize", config), "\nkind: ")
		applied := target.run("apply", "--server-side", "--dry-run=server", "-k", config)
		if got := strings.Count(applied, "serverside-applied (server dry run)"); got != objects || objects == 0 {
			t.Errorf("%s: %d of %d objects were accepted:\n%s", config, got, objects, applied)
		}
	}
}

func TestInstallationPermitsReadingAndNoMore(t *testing.T) {
	target := newInstallTarget(t)
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
		{"workloads list objects of any kind", "list watch", "", "pods secrets nodes events namespaces", anyName, "", true},
		{"workloads list objects of any kind", "list watch", "apps", "deployments replicasets", anyName, elsewhere, true},
		{"kinds may be installed later", "list watch", "widgets.example.com", "widgets", anyName, "", true},
		{"the controller writes statuses", "patch", agentGroup, "threeportworkloads/status", "any", "", true},
		{"the controller adds and removes its finalizer", "patch", agentGroup, "threeportworkloads", "any", "", true},
		{"it asks which permission is missing", "create", "authorization.k8s.io", "selfsubjectaccessreviews", anyName, "", true},
		{"it elects a leader", "create", "coordination.k8s.io", "leases", anyName, installNamespace, true},
		{"it elects a leader", "get update", "coordination.k8s.io", "leases", installLease, installNamespace, true},
		{"it tells who leads", "create patch", "", "events", anyName, installNamespace, true},

		{"it never changes a workload", "create update patch delete deletecollection", "", "pods secrets configmaps services namespaces nodes serviceaccounts", anyName, elsewhere, false},
		{"it never changes a workload", "create update patch delete deletecollection", "apps", "deployments statefulsets deployments/scale deployments/status", anyName, elsewhere, false},
		{"nor what it reads in its own namespace", "create update patch delete deletecollection", "", "pods secrets configmaps", anyName, installNamespace, false},
		{"upstream owns the list", "create update delete deletecollection", agentGroup, "threeportworkloads", anyName, "", false},
		{"patching a status is enough", "create update delete", agentGroup, "threeportworkloads/status", "any", "", false},
		{"it writes no Event about a workload", "create update patch delete", "", "events", anyName, elsewhere, false},
		{"it writes no Event about a workload", "create update patch delete", "events.k8s.io", "events", anyName, elsewhere, false},
		{"leases of others keep leaders and nodes alive", "create update patch delete", "coordination.k8s.io", "leases", anyName, elsewhere, false},
		{"leases of others keep leaders and nodes alive", "update patch delete", "coordination.k8s.io", "leases", "other", installNamespace, false},
		{"it may not run commands", "create", "", "pods/exec pods/attach pods/portforward pods/ephemeralcontainers", anyName, elsewhere, false},
		{"to get them is to run commands too", "get", "", "pods/exec pods/attach pods/portforward pods/proxy services/proxy nodes/proxy", "any", elsewhere, false},
		{"lists are enough to read objects", "get", "", "secrets configmaps pods", "any", elsewhere, false},
		{"it may not become somebody else", "create", "", "serviceaccounts/token", "default", elsewhere, false},
		{"it may not become somebody else", "impersonate", "", "users groups serviceaccounts", anyName, "", false},
		{"it may not widen its role", "create update patch bind escalate", "rbac.authorization.k8s.io", "clusterroles clusterrolebindings roles rolebindings", anyName, "", false},
		{"it installs no kinds", "create update patch delete", "apiextensions.k8s.io", "customresourcedefinitions", anyName, "", false},
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
				got, err := target.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
				if err != nil {
					t.Fatalf("review %s %s: %v", verb, resource, err)
				}
				if got.Status.Allowed != tt.wantAllowed {
					t.Errorf("%s: %s %s.%s %q in namespace %q: allowed is %v, want %v (%s)",
						tt.reason, verb, resource, tt.group, tt.name, tt.namespace, got.Status.Allowed, tt.wantAllowed, got.Status.Reason)
				}
			}
		}
	}
}

// installManifest wraps a spec, in YAML's flow style.
func installManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: ThreeportWorkload\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.GroupVersion, name, spec)
}

func TestInstalledSchemaRefusesMistakes(t *testing.T) {
	target := newInstallTarget(t)
	target.installCRD()

	// A spec of one type and ID, with these resources.
	with := func(resources ...string) string {
		return fmt.Sprintf("{workloadType: WorkloadInstance, workloadInstanceId: 877588458330128385, workloadResourceInstances: [%s]}",
			strings.Join(resources, ", "))
	}
	const (
		conf = "{version: v1, kind: ConfigMap, name: conf, namespace: app-0, threeportID: 877588461973536769}"
		web  = "{group: apps, version: v1, kind: Deployment, name: web, namespace: app-0, threeportID: 877588462010892289}"
	)
	tests := []struct {
		reason string
		spec   string
		want   []string // texts of the refusal; none: accepted
	}{
		{"what upstream writes", with(conf, web), nil},
		{"a Helm workload's resources have no ID, and some no namespace", "{workloadType: HelmWorkloadInstance, workloadInstanceId: 1, workloadResourceInstances: [" +
			"{group: apps, version: v1, kind: Deployment, name: web, namespace: app-0}, {version: v1, kind: Service, name: web}]}", nil},
		{"0 is no ID, so it may repeat", with("{version: v1, kind: Secret, name: a, threeportID: 0}", "{version: v1, kind: Secret, name: b, threeportID: 0}"), nil},
		{"the list may come later", "{workloadType: WorkloadInstance, workloadInstanceId: 1}", nil},
		{"clients send null for what they leave out", with("{group: null, version: v1, kind: Node, name: a, namespace: null, threeportID: null}"), nil},
		{"the greatest ID", "{workloadType: WorkloadInstance, workloadInstanceId: 9223372036854775807}", nil},
		{"same name, other kind", with(web, "{group: apps, version: v1, kind: StatefulSet, name: web, namespace: app-0, threeportID: 2}"), nil},
		{"same name, other group", with(web, "{group: example.com, version: v1, kind: Deployment, name: web, namespace: app-0, threeportID: 2}"), nil},
		{"same name, other namespace", with(web, "{group: apps, version: v1, kind: Deployment, name: web, namespace: app-1, threeportID: 2}"), nil},

		{"an unknown type", "{workloadType: Workload, workloadInstanceId: 1}", []string{"spec.workloadType", `supported values: "WorkloadInstance", "HelmWorkloadInstance"`}},
		{"no type", "{workloadInstanceId: 1}", []string{"spec.workloadType: Required value"}},
		{"no instance", "{workloadType: WorkloadInstance}", []string{"spec.workloadInstanceId: Required value"}},
		{"an instance that cannot be", "{workloadType: WorkloadInstance, workloadInstanceId: 0}", []string{"spec.workloadInstanceId", "greater than or equal to 1"}},
		{"an instance that cannot be", "{workloadType: WorkloadInstance, workloadInstanceId: -1}", []string{"spec.workloadInstanceId", "greater than or equal to 1"}},
		{"an ID in quotes", `{workloadType: WorkloadInstance, workloadInstanceId: "1"}`, []string{"spec.workloadInstanceId", "must be of type integer"}},
		{"an ID beyond int64 would be rounded", "{workloadType: WorkloadInstance, workloadInstanceId: 9223372036854775808}", []string{"spec.workloadInstanceId", "must be of type int64"}},
		{"an ID with a fraction", "{workloadType: WorkloadInstance, workloadInstanceId: 1.5}", []string{"spec.workloadInstanceId", "must be of type int64"}},

		{"no version", with("{kind: ConfigMap, name: conf}"), []string{"spec.workloadResourceInstances[0].version: Required value"}},
		{"an empty version", with(`{version: "", kind: ConfigMap, name: conf}`), []string{"spec.workloadResourceInstances[0].version", "at least 1 chars"}},
		{"no kind", with(conf, "{version: v1, name: conf}"), []string{"spec.workloadResourceInstances[1].kind: Required value"}},
		{"an empty kind", with(conf, `{version: v1, kind: "", name: conf}`), []string{"spec.workloadResourceInstances[1].kind", "at least 1 chars"}},
		{"no name", with("{version: v1, kind: ConfigMap}"), []string{"spec.workloadResourceInstances[0].name: Required value"}},
		{"an empty name", with(`{version: v1, kind: ConfigMap, name: ""}`), []string{"spec.workloadResourceInstances[0].name", "at least 1 chars"}},
		{"an ID that cannot be", with("{version: v1, kind: ConfigMap, name: conf, threeportID: -1}"), []string{"spec.workloadResourceInstances[0].threeportID", "greater than or equal to 0"}},

		{
			"the same resource twice", with(conf, web, "{version: v1, kind: ConfigMap, name: conf, namespace: app-0, threeportID: 2}"),
			[]string{"spec.workloadResourceInstances[2]: Duplicate value", `"kind":"ConfigMap","name":"conf","namespace":"app-0"`},
		},
		{
			"another version is the same object", with(web, "{group: apps, version: v1beta1, kind: Deployment, name: web, namespace: app-0, threeportID: 2}"),
			[]string{"spec.workloadResourceInstances[1]: Duplicate value", `"name":"web"`},
		},
		{
			"an empty group is the core group", with("{version: v1, kind: Node, name: a}", `{group: "", version: v1, kind: Node, name: a, namespace: ""}`),
			[]string{"spec.workloadResourceInstances[1]: Duplicate value"},
		},
		{
			"the same ID twice", with(conf, web, "{version: v1, kind: Secret, name: key, namespace: app-0, threeportID: 877588461973536769}"),
			[]string{"spec.workloadResourceInstances", "threeportID 877588461973536769 is listed twice: give each resource the ID of its own WorkloadResourceInstance"},
		},
	}
	for _, tt := range tests {
		err := target.create(installYAML, installManifest("workload", tt.spec), true)
		if err = installRefusal(err, tt.want); err != nil {
			t.Errorf("%s: %s\n%v", tt.reason, tt.spec, err)
		}
	}

	t.Run("IDs beyond 2^53 are exact", func(t *testing.T) {
		if err := target.create(installYAML, installManifest("exact", with(conf, web)), false); err != nil {
			t.Fatal(err)
		}
		raw, err := target.client.RESTClient().Get().AbsPath(installWorkloads, "exact").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.ThreeportWorkload
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		want := v1alpha1.ThreeportWorkloadSpec{
			WorkloadType: v1alpha1.WorkloadTypeInstance, WorkloadInstanceID: 877588458330128385,
			WorkloadResourceInstances: []v1alpha1.WorkloadResourceInstance{
				{Version: "v1", Kind: "ConfigMap", Name: "conf", Namespace: "app-0", ThreeportID: 877588461973536769},
				{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web", Namespace: "app-0", ThreeportID: 877588462010892289},
			},
		}
		if got.Spec.WorkloadInstanceID != want.WorkloadInstanceID || !slices.Equal(got.Spec.WorkloadResourceInstances, want.WorkloadResourceInstances) {
			t.Errorf("got %+v\nwant %+v", got.Spec, want)
		}
	})
}

// installResources is how many resources a workload may have.
const installResources = 2000

// installWorkload has this many resources, with the IDs that id gives them.
func installWorkload(name string, resources int, id func(int) int64) *v1alpha1.ThreeportWorkload {
	wl := &v1alpha1.ThreeportWorkload{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ThreeportWorkload"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ThreeportWorkloadSpec{WorkloadType: v1alpha1.WorkloadTypeInstance, WorkloadInstanceID: 877588458330128385},
	}
	for n := range resources {
		wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
			Group: "apps", Version: "v1", Kind: "Deployment", ThreeportID: id(n),
			Name: fmt.Sprintf("component-number-%04d", n), Namespace: fmt.Sprintf("app-%d", n%50),
		})
	}
	return wl
}

// The limit of the API server on the cost of a rule is what makes the number of resources a question: see the
// type's comment.
func TestInstalledSchemaHoldsManyResources(t *testing.T) {
	target := newInstallTarget(t)
	target.installCRD()

	const first = int64(877588461973536769)
	unlike := func(n int) int64 { return first + int64(n)<<15*37 } // as the control plane's database makes them: a time, then its node
	tests := []struct {
		reason    string
		resources int
		id        func(int) int64
		want      []string
	}{
		{"as many as there may be", installResources, unlike, nil},
		{"consecutive IDs", installResources, func(n int) int64 { return first + int64(n) }, nil},
		{"no IDs, as a Helm workload has it", installResources, func(int) int64 { return 0 }, nil},
		{"IDs that fall into one rule of several", 900, func(n int) int64 { return 7 * (1 + int64(n)) }, nil},
		{"one too many", installResources + 1, unlike, []string{"spec.workloadResourceInstances", "must have at most 2000 items"}},
		{
			"the last ID is the first once more", installResources, func(n int) int64 { return unlike(n % (installResources - 1)) },
			[]string{"threeportID 877588461973536769 is listed twice"},
		},
	}
	for _, tt := range tests {
		raw, err := json.Marshal(installWorkload("many", tt.resources, tt.id))
		if err != nil {
			t.Fatal(err)
		}
		err = target.create(installJSON, string(raw), true)
		if err = installRefusal(err, tt.want); err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
	for _, remainder := range []int{0, 1, 2, 3, 4, 5, 6} {
		id := func(n int) int64 { return 7*(1+int64(n%2)) + int64(remainder) } // the third is the first once more
		raw, err := json.Marshal(installWorkload("three", 3, id))
		if err != nil {
			t.Fatal(err)
		}
		err = target.create(installJSON, string(raw), true)
		if err := installRefusal(err, []string{fmt.Sprintf("threeportID %d is listed twice", id(0))}); err != nil {
			t.Errorf("every rule finds its IDs: remainder %d: %v", remainder, err)
		}
	}

	t.Run("with a status for each", func(t *testing.T) {
		target.createWithStatus(t, installWorkload("status", installResources, unlike))
	})
}

// createWithStatus stores a workload and then, as the controller does, a status of it in which every resource has
// something to say. Both together have to fit into etcd.
func (i installTarget) createWithStatus(t *testing.T, wl *v1alpha1.ThreeportWorkload) {
	t.Helper()
	raw, err := json.Marshal(wl)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.create(installJSON, string(raw), false); err != nil {
		t.Fatalf("create: %v", err)
	}
	var status v1alpha1.ThreeportWorkloadStatus
	for _, r := range wl.Spec.WorkloadResourceInstances {
		status.Resources = append(status.Resources, v1alpha1.ResourceStatus{
			Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			State: v1alpha1.ResourceAbsent, Message: "no such object exists, or not any more",
			Health: "Unhealthy", Reason: "ImagePullBackOff: container web: image web:1.2.3 cannot be pulled",
		})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	err = i.client.RESTClient().Patch(types.MergePatchType).AbsPath(installWorkloads, wl.Name, "status").Body(patch).Do(t.Context()).Error()
	if err != nil {
		t.Errorf("write the status, %d bytes: %v", len(patch), err)
	}
}
