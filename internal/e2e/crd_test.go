package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

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

// installManifest returns a ThreeportWorkload with a spec in YAML's flow style.
func installManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: ThreeportWorkload\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.GroupVersion, name, spec)
}

// specWith returns a valid spec with these resources.
func specWith(resources ...string) string {
	return fmt.Sprintf("{workloadType: WorkloadInstance, workloadInstanceId: 877588458330128385, workloadResourceInstances: [%s]}",
		strings.Join(resources, ", "))
}

// Resources of a spec.
const (
	specConfigMap  = "{version: v1, kind: ConfigMap, name: conf, namespace: app-0, threeportID: 877588461973536769}"
	specDeployment = "{group: apps, version: v1, kind: Deployment, name: web, namespace: app-0, threeportID: 877588462010892289}"
)

// crdRejectsInvalidSpecs creates valid and invalid workloads in a dry run.
func crdRejectsInvalidSpecs(target installTarget) {
	target.Helper()
	target.installCRD()

	// Kubernetes validates the formats int32 and int64 since 1.36. Until then, a number that int64 cannot hold is no integer.
	notInt64 := "must be of type int64"
	if kubernetesBefore(target.T, target.client, 36) {
		notInt64 = "must be of type integer"
	}
	tests := []struct {
		reason string
		spec   string
		want   []string // texts of the error; none: accepted
	}{
		{reason: "a spec as upstream writes it", spec: specWith(specConfigMap, specDeployment)},
		{
			reason: "a Helm workload's resources have no ID, and some no namespace",
			spec: "{workloadType: HelmWorkloadInstance, workloadInstanceId: 1, workloadResourceInstances: [" +
				"{group: apps, version: v1, kind: Deployment, name: web, namespace: app-0}, {version: v1, kind: Service, name: web}]}",
		},
		{
			reason: "0 is no ID, so it may repeat",
			spec:   specWith("{version: v1, kind: Secret, name: a, threeportID: 0}", "{version: v1, kind: Secret, name: b, threeportID: 0}"),
		},
		{reason: "a spec without a list", spec: "{workloadType: WorkloadInstance, workloadInstanceId: 1}"},
		{
			reason: "null for optional fields",
			spec:   specWith("{group: null, version: v1, kind: Node, name: a, namespace: null, threeportID: null}"),
		},
		{reason: "the greatest ID", spec: "{workloadType: WorkloadInstance, workloadInstanceId: 9223372036854775807}"},
		{
			reason: "same name, other kind",
			spec:   specWith(specDeployment, "{group: apps, version: v1, kind: StatefulSet, name: web, namespace: app-0, threeportID: 2}"),
		},
		{
			reason: "same name, other group",
			spec:   specWith(specDeployment, "{group: example.com, version: v1, kind: Deployment, name: web, namespace: app-0, threeportID: 2}"),
		},
		{
			reason: "same name, other namespace",
			spec:   specWith(specDeployment, "{group: apps, version: v1, kind: Deployment, name: web, namespace: app-1, threeportID: 2}"),
		},

		{
			reason: "an unknown type",
			spec:   "{workloadType: Workload, workloadInstanceId: 1}",
			want:   []string{"spec.workloadType", `supported values: "WorkloadInstance", "HelmWorkloadInstance"`},
		},
		{
			reason: "a version that is a path",
			spec:   specWith("{version: ../api/v1, kind: Secret, name: a}"),
			want:   []string{"workloadResourceInstances[0].version", "should match"},
		},
		{
			reason: "a group that is a path",
			spec:   specWith("{group: ../api, version: v1, kind: Secret, name: a}"),
			want:   []string{"workloadResourceInstances[0].group", "should match"},
		},
		{
			reason: "a kind with a character that no kind has",
			spec:   specWith("{version: v1, kind: Pod/log, name: a}"),
			want:   []string{"workloadResourceInstances[0].kind", "should match"},
		},
		{
			reason: "a group with a dash",
			spec:   specWith("{group: my-group.example.com, version: v1alpha1, kind: Widget, name: a}"),
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
			want:   []string{"spec.workloadInstanceId", notInt64},
		},
		{
			reason: "an ID with a fraction",
			spec:   "{workloadType: WorkloadInstance, workloadInstanceId: 1.5}",
			want:   []string{"spec.workloadInstanceId", notInt64},
		},

		{
			reason: "no version",
			spec:   specWith("{kind: ConfigMap, name: conf}"),
			want:   []string{"spec.workloadResourceInstances[0].version: Required value"},
		},
		{
			reason: "an empty version",
			spec:   specWith(`{version: "", kind: ConfigMap, name: conf}`),
			want:   []string{"spec.workloadResourceInstances[0].version", "at least 1 chars"},
		},
		{
			reason: "no kind",
			spec:   specWith(specConfigMap, "{version: v1, name: conf}"),
			want:   []string{"spec.workloadResourceInstances[1].kind: Required value"},
		},
		{
			reason: "an empty kind",
			spec:   specWith(specConfigMap, `{version: v1, kind: "", name: conf}`),
			want:   []string{"spec.workloadResourceInstances[1].kind", "at least 1 chars"},
		},
		{
			reason: "no name",
			spec:   specWith("{version: v1, kind: ConfigMap}"),
			want:   []string{"spec.workloadResourceInstances[0].name: Required value"},
		},
		{
			reason: "an empty name",
			spec:   specWith(`{version: v1, kind: ConfigMap, name: ""}`),
			want:   []string{"spec.workloadResourceInstances[0].name", "at least 1 chars"},
		},
		{
			reason: "a negative threeportID",
			spec:   specWith("{version: v1, kind: ConfigMap, name: conf, threeportID: -1}"),
			want:   []string{"spec.workloadResourceInstances[0].threeportID", "greater than or equal to 0"},
		},

		{
			reason: "the same resource twice",
			spec:   specWith(specConfigMap, specDeployment, "{version: v1, kind: ConfigMap, name: conf, namespace: app-0, threeportID: 2}"),
			want:   []string{"spec.workloadResourceInstances[2]: Duplicate value", `"kind":"ConfigMap","name":"conf","namespace":"app-0"`},
		},
		{
			reason: "another version is the same object",
			spec:   specWith(specDeployment, "{group: apps, version: v1beta1, kind: Deployment, name: web, namespace: app-0, threeportID: 2}"),
			want:   []string{"spec.workloadResourceInstances[1]: Duplicate value", `"name":"web"`},
		},
		{
			reason: "an empty group is the core group",
			spec:   specWith("{version: v1, kind: Node, name: a}", `{group: "", version: v1, kind: Node, name: a, namespace: ""}`),
			want:   []string{"spec.workloadResourceInstances[1]: Duplicate value"},
		},
		{
			reason: "the same ID twice",
			spec:   specWith(specConfigMap, specDeployment, "{version: v1, kind: Secret, name: key, namespace: app-0, threeportID: 877588461973536769}"),
			want:   []string{"spec.workloadResourceInstances", "threeportID 877588461973536769 is listed twice: give each resource the ID of its own WorkloadResourceInstance"},
		},
	}
	for _, tt := range tests {
		err := target.create(installYAML, installManifest("workload", tt.spec), true)
		if err = checkAnswer(err, tt.want); err != nil {
			target.Errorf("%s: %s\n%v", tt.reason, tt.spec, err)
		}
	}
}

// crdKeepsLargeIDs reads IDs beyond 2^53, which a float64 would round.
func crdKeepsLargeIDs(target installTarget) {
	target.Helper()
	target.installCRD()
	if err := target.create(installYAML, installManifest("exact", specWith(specConfigMap, specDeployment)), false); err != nil {
		target.Fatal(err)
	}
	raw, err := target.client.RESTClient().Get().AbsPath(installWorkloads, "exact").DoRaw(target.Context())
	if err != nil {
		target.Fatal(err)
	}
	var got v1alpha1.ThreeportWorkload
	if err := json.Unmarshal(raw, &got); err != nil {
		target.Fatal(err)
	}
	want := v1alpha1.ThreeportWorkloadSpec{
		WorkloadType: v1alpha1.WorkloadTypeInstance, WorkloadInstanceID: 877588458330128385,
		WorkloadResourceInstances: []v1alpha1.WorkloadResourceInstance{
			{Version: "v1", Kind: "ConfigMap", Name: "conf", Namespace: "app-0", ThreeportID: 877588461973536769},
			{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web", Namespace: "app-0", ThreeportID: 877588462010892289},
		},
	}
	if got.Spec.WorkloadInstanceID != want.WorkloadInstanceID || !slices.Equal(got.Spec.WorkloadResourceInstances, want.WorkloadResourceInstances) {
		target.Errorf("got %+v\nwant %+v", got.Spec, want)
	}
}

// installResources is the maximum number of resources of a workload.
const installResources = 2000

// firstID is the ID of the first resource.
const firstID = int64(877588461973536769)

// databaseID returns the ID of the nth resource as the control plane's database generates it: a time, then the database node.
func databaseID(n int) int64 { return firstID + int64(n)<<15*37 }

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
func crdAcceptsLargeSpecs(target installTarget) {
	target.Helper()
	target.installCRD()

	tests := []struct {
		reason    string
		resources int
		id        func(int) int64
		want      []string
	}{
		{reason: "the maximum number of resources", resources: installResources, id: databaseID},
		{reason: "consecutive IDs", resources: installResources, id: func(n int) int64 { return firstID + int64(n) }},
		{reason: "no IDs, as in a Helm workload", resources: installResources, id: func(int) int64 { return 0 }},
		{reason: "IDs that fall into one rule of several", resources: 900, id: func(n int) int64 { return 7 * (1 + int64(n)) }},
		{
			reason:    "more than the maximum number of resources",
			resources: installResources + 1,
			id:        databaseID,
			want:      []string{"spec.workloadResourceInstances", "must have at most 2000 items"},
		},
		{
			reason:    "the last ID repeats the first",
			resources: installResources,
			id:        func(n int) int64 { return databaseID(n % (installResources - 1)) },
			want:      []string{"threeportID 877588461973536769 is listed twice"},
		},
	}
	for _, tt := range tests {
		raw, err := json.Marshal(installWorkload("many", tt.resources, tt.id))
		if err != nil {
			target.Fatal(err)
		}
		err = target.create(installJSON, string(raw), true)
		if err = checkAnswer(err, tt.want); err != nil {
			target.Errorf("%s: %v", tt.reason, err)
		}
	}
	for _, remainder := range []int{0, 1, 2, 3, 4, 5, 6} {
		id := func(n int) int64 { return 7*(1+int64(n%2)) + int64(remainder) } // the third is the first once more
		raw, err := json.Marshal(installWorkload("three", 3, id))
		if err != nil {
			target.Fatal(err)
		}
		err = target.create(installJSON, string(raw), true)
		if err := checkAnswer(err, []string{fmt.Sprintf("threeportID %d is listed twice", id(0))}); err != nil {
			target.Errorf("a duplicate ID with remainder %d: %v", remainder, err)
		}
	}
}

// crdAcceptsLargeStatus stores a workload and then, as the controller does, a status with a message for every resource. Both
// together must fit into etcd.
func crdAcceptsLargeStatus(target installTarget) {
	target.Helper()
	target.installCRD()
	wl := installWorkload("status", installResources, databaseID)
	raw, err := json.Marshal(wl)
	if err != nil {
		target.Fatal(err)
	}
	if err := target.create(installJSON, string(raw), false); err != nil {
		target.Fatalf("create: %v", err)
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
		target.Fatal(err)
	}
	err = target.client.RESTClient().Patch(types.MergePatchType).AbsPath(installWorkloads, wl.Name, "status").Body(patch).Do(target.Context()).Error()
	if err != nil {
		target.Errorf("write the status, %d bytes: %v", len(patch), err)
	}
}
