package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// Names in config/default.
const (
	installNamespace = "threeport-agent-system"
	installUser      = "system:serviceaccount:threeport-agent-system:threeport-agent"
	installLease     = "threeport-agent.control-plane.threeport.io"
	installCRD       = "threeportworkloads.control-plane.threeport.io"
	installWorkloads = "/apis/control-plane.threeport.io/v1alpha1/threeportworkloads"
)

// installTarget is the API server of the tests of this file. They install the same objects, and no agent runs there.
type installTarget struct {
	*testing.T
	client  *kubernetes.Clientset
	kubectl []string // the command, with its flags
}

// startInstallServer starts the API server once. It has no CRD and no role of the agent at first. TestMain stops it.
var startInstallServer = sync.OnceValues(func() (c *cluster.Cluster, err error) {
	c, err = cluster.Start(context.Background(), cluster.Options{Components: cluster.APIOnly(), Log: os.Stderr})
	shared.installServer = c
	return c, err
})

func newInstallTarget(t *testing.T) installTarget {
	t.Helper()
	c, err := startInstallServer()
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
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

// run runs kubectl, expects success without warnings, and returns its output.
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

// installCRD installs the CRD.
func (i installTarget) installCRD() {
	i.Helper()
	i.run("apply", "--server-side", "-k", "config/crd")
	i.run("wait", "--for=condition=Established", "--timeout=30s", "crd/"+installCRD)
}

// The media types of the bodies that create sends.
const (
	installYAML = "application/yaml"
	installJSON = "application/json"
)

// create sends a ThreeportWorkload unchanged.
func (i installTarget) create(mediaType, manifest string, dryRun bool) error {
	request := i.client.RESTClient().Post().AbsPath(installWorkloads).
		SetHeader("Content-Type", mediaType).Body([]byte(manifest))
	if dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Do(i.Context()).Error()
}

// checkAnswer returns an error if an answer is not the wanted one: success, or an error with all these texts.
func checkAnswer(err error, want []string) error {
	switch {
	case len(want) == 0 && err != nil:
		return fmt.Errorf("rejected: %w", err)
	case len(want) > 0 && err == nil:
		return fmt.Errorf("accepted, want an error that contains %q", want)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("the error does not contain %q: %w", text, err)
		}
	}
	return nil
}

func TestInstallation_IsAccepted(t *testing.T) {
	target := newInstallTarget(t)
	// The other objects need these, even in a dry run.
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

func TestInstallation_PermitsOnlyReading(t *testing.T) {
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

// installManifest returns a ThreeportWorkload with a spec in YAML's flow style.
func installManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: ThreeportWorkload\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.GroupVersion, name, spec)
}

func TestCRD_RejectsInvalidSpecs(t *testing.T) {
	target := newInstallTarget(t)
	target.installCRD()

	// with returns a spec with these resources.
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
		{reason: "a spec as upstream writes it", spec: with(conf, web)},
		{
			reason: "a Helm workload's resources have no ID, and some no namespace",
			spec: "{workloadType: HelmWorkloadInstance, workloadInstanceId: 1, workloadResourceInstances: [" +
				"{group: apps, version: v1, kind: Deployment, name: web, namespace: app-0}, {version: v1, kind: Service, name: web}]}",
		},
		{
			reason: "0 is no ID, so it may repeat",
			spec:   with("{version: v1, kind: Secret, name: a, threeportID: 0}", "{version: v1, kind: Secret, name: b, threeportID: 0}"),
		},
		{reason: "a spec without a list", spec: "{workloadType: WorkloadInstance, workloadInstanceId: 1}"},
		{
			reason: "null for optional fields",
			spec:   with("{group: null, version: v1, kind: Node, name: a, namespace: null, threeportID: null}"),
		},
		{reason: "the greatest ID", spec: "{workloadType: WorkloadInstance, workloadInstanceId: 9223372036854775807}"},
		{
			reason: "same name, other kind",
			spec:   with(web, "{group: apps, version: v1, kind: StatefulSet, name: web, namespace: app-0, threeportID: 2}"),
		},
		{
			reason: "same name, other group",
			spec:   with(web, "{group: example.com, version: v1, kind: Deployment, name: web, namespace: app-0, threeportID: 2}"),
		},
		{
			reason: "same name, other namespace",
			spec:   with(web, "{group: apps, version: v1, kind: Deployment, name: web, namespace: app-1, threeportID: 2}"),
		},

		{
			reason: "an unknown type",
			spec:   "{workloadType: Workload, workloadInstanceId: 1}",
			want:   []string{"spec.workloadType", `supported values: "WorkloadInstance", "HelmWorkloadInstance"`},
		},
		{reason: "no type", spec: "{workloadInstanceId: 1}", want: []string{"spec.workloadType: Required value"}},
		{
			reason: "no instance",
			spec:   "{workloadType: WorkloadInstance}",
			want:   []string{"spec.workloadInstanceId: Required value"},
		},
		{
			reason: "an instance ID below 1",
			spec:   "{workloadType: WorkloadInstance, workloadInstanceId: 0}",
			want:   []string{"spec.workloadInstanceId", "greater than or equal to 1"},
		},
		{
			reason: "an instance ID below 1",
			spec:   "{workloadType: WorkloadInstance, workloadInstanceId: -1}",
			want:   []string{"spec.workloadInstanceId", "greater than or equal to 1"},
		},
		{
			reason: "an ID in quotes",
			spec:   `{workloadType: WorkloadInstance, workloadInstanceId: "1"}`,
			want:   []string{"spec.workloadInstanceId", "must be of type integer"},
		},
		{
			reason: "an ID beyond int64 would be rounded",
			spec:   "{workloadType: WorkloadInstance, workloadInstanceId: 9223372036854775808}",
			want:   []string{"spec.workloadInstanceId", "must be of type int64"},
		},
		{
			reason: "an ID with a fraction",
			spec:   "{workloadType: WorkloadInstance, workloadInstanceId: 1.5}",
			want:   []string{"spec.workloadInstanceId", "must be of type int64"},
		},

		{
			reason: "no version",
			spec:   with("{kind: ConfigMap, name: conf}"),
			want:   []string{"spec.workloadResourceInstances[0].version: Required value"},
		},
		{
			reason: "an empty version",
			spec:   with(`{version: "", kind: ConfigMap, name: conf}`),
			want:   []string{"spec.workloadResourceInstances[0].version", "at least 1 chars"},
		},
		{
			reason: "no kind",
			spec:   with(conf, "{version: v1, name: conf}"),
			want:   []string{"spec.workloadResourceInstances[1].kind: Required value"},
		},
		{
			reason: "an empty kind",
			spec:   with(conf, `{version: v1, kind: "", name: conf}`),
			want:   []string{"spec.workloadResourceInstances[1].kind", "at least 1 chars"},
		},
		{
			reason: "no name",
			spec:   with("{version: v1, kind: ConfigMap}"),
			want:   []string{"spec.workloadResourceInstances[0].name: Required value"},
		},
		{
			reason: "an empty name",
			spec:   with(`{version: v1, kind: ConfigMap, name: ""}`),
			want:   []string{"spec.workloadResourceInstances[0].name", "at least 1 chars"},
		},
		{
			reason: "a negative threeportID",
			spec:   with("{version: v1, kind: ConfigMap, name: conf, threeportID: -1}"),
			want:   []string{"spec.workloadResourceInstances[0].threeportID", "greater than or equal to 0"},
		},

		{
			reason: "the same resource twice",
			spec:   with(conf, web, "{version: v1, kind: ConfigMap, name: conf, namespace: app-0, threeportID: 2}"),
			want:   []string{"spec.workloadResourceInstances[2]: Duplicate value", `"kind":"ConfigMap","name":"conf","namespace":"app-0"`},
		},
		{
			reason: "another version is the same object",
			spec:   with(web, "{group: apps, version: v1beta1, kind: Deployment, name: web, namespace: app-0, threeportID: 2}"),
			want:   []string{"spec.workloadResourceInstances[1]: Duplicate value", `"name":"web"`},
		},
		{
			reason: "an empty group is the core group",
			spec:   with("{version: v1, kind: Node, name: a}", `{group: "", version: v1, kind: Node, name: a, namespace: ""}`),
			want:   []string{"spec.workloadResourceInstances[1]: Duplicate value"},
		},
		{
			reason: "the same ID twice",
			spec:   with(conf, web, "{version: v1, kind: Secret, name: key, namespace: app-0, threeportID: 877588461973536769}"),
			want:   []string{"spec.workloadResourceInstances", "threeportID 877588461973536769 is listed twice: give each resource the ID of its own WorkloadResourceInstance"},
		},
	}
	for _, tt := range tests {
		err := target.create(installYAML, installManifest("workload", tt.spec), true)
		if err = checkAnswer(err, tt.want); err != nil {
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

// installResources is the maximum number of resources of a workload.
const installResources = 2000

// installWorkload returns a workload with a number of resources, whose IDs id returns.
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

// The API server limits the cost of the CRD's rules, which depends on the number of resources: see the comment of the type.
func TestCRD_AcceptsLargeSpecs(t *testing.T) {
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
		{reason: "the maximum number of resources", resources: installResources, id: unlike},
		{reason: "consecutive IDs", resources: installResources, id: func(n int) int64 { return first + int64(n) }},
		{reason: "no IDs, as in a Helm workload", resources: installResources, id: func(int) int64 { return 0 }},
		{reason: "IDs that fall into one rule of several", resources: 900, id: func(n int) int64 { return 7 * (1 + int64(n)) }},
		{
			reason:    "more than the maximum number of resources",
			resources: installResources + 1,
			id:        unlike,
			want:      []string{"spec.workloadResourceInstances", "must have at most 2000 items"},
		},
		{
			reason:    "the last ID repeats the first",
			resources: installResources,
			id:        func(n int) int64 { return unlike(n % (installResources - 1)) },
			want:      []string{"threeportID 877588461973536769 is listed twice"},
		},
	}
	for _, tt := range tests {
		raw, err := json.Marshal(installWorkload("many", tt.resources, tt.id))
		if err != nil {
			t.Fatal(err)
		}
		err = target.create(installJSON, string(raw), true)
		if err = checkAnswer(err, tt.want); err != nil {
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
		if err := checkAnswer(err, []string{fmt.Sprintf("threeportID %d is listed twice", id(0))}); err != nil {
			t.Errorf("a duplicate ID with remainder %d: %v", remainder, err)
		}
	}

	t.Run("with a status for each", func(t *testing.T) {
		target.createWithStatus(t, installWorkload("status", installResources, unlike))
	})
}

// createWithStatus stores a workload and then, as the controller does, a status with a message for every resource. Both
// together must fit into etcd.
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
			State: v1alpha1.ResourceAbsent, Message: "no such object exists, or it was deleted",
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
