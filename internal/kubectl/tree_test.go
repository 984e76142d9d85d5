package kubectl

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// byAnnotation assesses an object by its annotation verdict: STATUS/REASON/MESSAGE.
type byAnnotation struct{}

func (byAnnotation) Covers(schema.GroupKind) bool { return true }

func (byAnnotation) Judge(_ schema.GroupKind, object map[string]any, _ time.Time) (health.Assessment, bool) {
	text, found, err := unstructured.NestedString(object, "metadata", "annotations", "verdict")
	if err != nil || !found {
		return health.Assessment{}, false
	}
	parts := strings.SplitN(text, "/", 3)
	return health.Assessment{Verdict: health.Verdict{Status: health.Status(parts[0]), Reason: parts[1], Message: parts[2]}}, true
}

// grown returns the tree of testdata/input/tree.yaml, with 15 pods of which 3 crash.
func grown(t *testing.T) (*treeNode, *v1alpha1.ThreeportWorkload) {
	t.Helper()
	data, err := os.ReadFile("testdata/input/tree.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Workload v1alpha1.ThreeportWorkload `json:"workload"`
		Listed   []map[string]any           `json:"listed"`
		Derived  []map[string]any           `json:"derived"`
		Labelled []map[string]any           `json:"labelled"`
	}
	data, err = yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := kjson.Unmarshal(data, &in); err != nil { // with whole numbers as int64
		t.Fatal(err)
	}
	have := &workloadObjects{warnings: map[types.UID]health.Warning{
		"pod-03": {Reason: "BackOff", Message: "Back-off restarting failed container", Time: goldenTime.Add(-time.Minute)},
	}}
	for i, o := range in.Listed {
		s := listedResource{listed: in.Workload.Spec.WorkloadResourceInstances[i], state: v1alpha1.ResourcePresent}
		if state, ok := o["state"].(string); ok {
			s.state = v1alpha1.ResourceState(state)
			s.message, _ = o["message"].(string)
		} else {
			s.object = &unstructured.Unstructured{Object: o}
		}
		have.listed = append(have.listed, s)
	}
	for _, o := range in.Derived {
		have.derived = append(have.derived, &unstructured.Unstructured{Object: o})
	}
	for _, o := range in.Labelled {
		have.labelled = append(have.labelled, &unstructured.Unstructured{Object: o})
	}
	for i := range 15 {
		verdict := "Healthy//"
		if i%5 == 3 {
			verdict = "Down/CrashLoopBackOff/container web crashes: Error (exit code 1)"
		}
		uid := fmt.Sprintf("pod-%02d", i)
		have.derived = append(have.derived, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"namespace": "app", "name": "web-2-" + uid, "uid": uid, "creationTimestamp": "2026-01-31T11:50:00Z",
				"annotations":     map[string]any{"verdict": verdict},
				"ownerReferences": []any{map[string]any{"kind": "ReplicaSet", "name": "web-2", "uid": "web-2", "controller": true}},
			},
		}})
	}
	return buildTree(&in.Workload, have, health.Context{Now: goldenTime, Rules: byAnnotation{}}), &in.Workload
}

func TestTree_Text(t *testing.T) {
	root, wl := grown(t)
	for name, format := range map[string]string{"tree.txt": outputText, "tree-all.txt": outputWide} {
		var out bytes.Buffer
		p := &plugin{IOStreams: genericiooptions.IOStreams{Out: &out}, now: func() time.Time { return goldenTime }}
		o := &treeOptions{plugin: p, all: format == outputWide, output: output{value: format}}
		if err := o.show(root, reportedStatus(wl)); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

// The cause of the workload, its first words above all, is whole at each width.
func TestTree_Width_CauseIsNotCut(t *testing.T) {
	cause, _, _ := strings.Cut(longCause, ";")
	root := &treeNode{
		Kind: "ThreeportWorkload", Name: "web", Status: health.Down, Reason: "ImagePullBackOff", Message: cause,
		Children: []*treeNode{{
			Kind: "Deployment", Namespace: "shop", Name: "web", Status: health.Down, Reason: "ImagePullBackOff",
			selfMessage: "Deployment web has 0 of 5 replicas ready",
			Children: []*treeNode{{
				Kind: "ReplicaSet", Namespace: "shop", Name: "web-bc7476686", Status: health.Down, Reason: "ImagePullBackOff",
				selfMessage: "ReplicaSet web-bc7476686 has 0 of 5 replicas ready",
				Children: []*treeNode{{
					Kind: "Pod", Namespace: "shop", Name: "web-bc7476686-6wtw8-of-a-long-name", Status: health.Down, Reason: "ImagePullBackOff",
					selfMessage: "image registry.example.com/shop/app:9 cannot be pulled: it does not exist",
				}},
			}},
		}, {Kind: "ConfigMap", Namespace: "shop", Name: "conf", Status: health.Healthy}},
	}
	for width, name := range map[int]string{80: "tree-80.txt", 120: "tree-120.txt", 160: "tree-160.txt"} {
		var out bytes.Buffer
		if err := (&treeOptions{}).table(root, goldenTime).write(&out, false, "", width); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
		text := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", "")), " ")
		for _, want := range []string{cause, "image registry.example.com/shop/app:9 cannot be pulled: it does not exist"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: %q is cut:\n%s", width, want, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
				t.Errorf("a line has %d characters on a terminal of %d: %s", n, width, line)
			}
		}
	}
}

// TestStatus_Fresh_ResourcesAreAsTheAgentReportsThem checks the fields that differ between a tree and a status.
func TestStatus_Fresh_ResourcesAreAsTheAgentReportsThem(t *testing.T) {
	root, wl := grown(t)
	s := statusOf(wl)
	s.setAssessment(root)
	at := slices.IndexFunc(s.Resources, func(r v1alpha1.ResourceStatus) bool { return r.Kind == "Deployment" && r.Name == "web" })
	if at < 0 {
		t.Fatalf("there is no Deployment web in %+v", s.Resources)
	}
	if r := s.Resources[at]; r.Group != "apps" || r.Version != "v1" || r.Pods == nil || r.Pods.Total < 15 || r.Pods.Healthy < 12 {
		t.Errorf("the Deployment is %+v with Pods %+v, want group apps, version v1 and the counts of its Pods", r, r.Pods)
	}
}

func reportedStatus(wl *v1alpha1.ThreeportWorkload) *workloadStatus {
	s := statusOf(wl)
	return &s
}

func TestTree_AgentDiffers_NamesBothVerdictsFirst(t *testing.T) {
	at := &metav1.Time{Time: goldenTime.Add(-3 * time.Minute)}
	root := &treeNode{Kind: "ThreeportWorkload", Name: "web", Status: health.Down, Reason: "CrashLoopBackOff"}
	for _, tt := range []struct {
		reason   string
		reported workloadStatus
		want     string // the first line
	}{
		{"both agree", workloadStatus{Status: health.Down, Reason: "CrashLoopBackOff", Message: "another message"}, "OBJECT "},
		{"the agent simplified the reason", workloadStatus{Status: health.Down, Reason: "Crash-Loop back_off"}, "OBJECT "},
		{
			"flapping",
			workloadStatus{Status: health.Unhealthy, Reason: "CrashLoopBackOff", Message: "pod a: exit code 1, 5 changes in 10 min", Since: at},
			"The agent reports Unhealthy for 3m (CrashLoopBackOff: pod a: exit code 1, 5 changes in 10 min). The plugin assessed the objects now: Down (CrashLoopBackOff).\n\nOBJECT ",
		},
		{
			"another reason",
			workloadStatus{Status: health.Down, Reason: "ImagePullBackOff"},
			"The agent reports Down (ImagePullBackOff). The plugin assessed the objects now: Down (CrashLoopBackOff).\n",
		},
		{
			"the agent does not report",
			workloadStatus{Status: health.Unknown, LastStatus: health.Down, Since: at},
			"No report of the agent since 2026-01-31T11:57:00Z (last status: Down). The plugin assessed the objects now: Down (CrashLoopBackOff).\n",
		},
	} {
		var out bytes.Buffer
		p := &plugin{IOStreams: genericiooptions.IOStreams{Out: &out}, now: func() time.Time { return goldenTime }}
		if err := (&treeOptions{plugin: p}).show(root, &tt.reported); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), tt.want) {
			t.Errorf("%s: printed\n%s\nwant first\n%s", tt.reason, out.String(), tt.want)
		}
	}
}

// The agent assesses labelled objects together, and names another resource that is not Healthy.
func TestBuildTree_VerdictOnTheWorkload_IsThatOfTheAgent(t *testing.T) {
	object := func(apiVersion, kind, name, verdict string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind,
			"metadata": map[string]any{"name": name, "uid": name, "annotations": map[string]any{"verdict": verdict}},
		}}
	}
	absent := listedResource{listed: v1alpha1.WorkloadResourceInstance{Kind: "ConfigMap", Name: "a"}, state: v1alpha1.ResourceAbsent}
	present := listedResource{state: v1alpha1.ResourcePresent, object: object("v1", "ConfigMap", "b", "Healthy//")}
	for _, tt := range []struct {
		reason  string
		have    workloadObjects
		status  health.Status
		message string
	}{
		{
			"another resource is named",
			workloadObjects{listed: []listedResource{absent, absent}},
			health.Down, "ConfigMap a does not exist; ConfigMap a is not Healthy",
		},
		{
			"a labelled Deployment is left out",
			workloadObjects{listed: []listedResource{present}, labelled: []*unstructured.Unstructured{object("apps/v1", "Deployment", "d", "Down/X/x")}},
			health.Healthy, "",
		},
		{
			"a labelled Pod counts",
			workloadObjects{listed: []listedResource{present}, labelled: []*unstructured.Unstructured{object("v1", "Pod", "p", "Down/X/x")}},
			health.Down, "Pod p X: x",
		},
	} {
		root := buildTree(&v1alpha1.ThreeportWorkload{}, &tt.have, health.Context{Now: goldenTime, Rules: byAnnotation{}})
		if root.Status != tt.status || root.Message != tt.message {
			t.Errorf("%s: the workload is %s: %q, want %s: %q", tt.reason, root.Status, root.Message, tt.status, tt.message)
		}
	}
}

// A Service without endpoints is no fault while the Deployment that it selects is scaled to 0. The agent has the same rule.
func TestBuildTree_EmptyEndpointSlice_OfIdleDeployment(t *testing.T) {
	parse := func(text string) *unstructured.Unstructured {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return &u
	}
	deployment := func(label string) listedResource {
		return listedResource{state: v1alpha1.ResourcePresent, object: parse(`{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: web, namespace: ns, uid: d, generation: 1}, spec: {replicas: 0, template: {metadata: {labels: {app: ` + label + `}}}},
  status: {observedGeneration: 1}}`)}
	}
	service := listedResource{state: v1alpha1.ResourcePresent, object: parse(
		`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: ns, uid: s}, spec: {selector: {app: web}}}`)}
	slice := parse(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-x, namespace: ns, uid: x,
  creationTimestamp: "2026-01-31T11:00:00Z", ownerReferences: [{kind: Service, name: web, uid: s}]}}`)
	for label, want := range map[string]health.Verdict{
		"web":   {Status: health.Healthy, Reason: health.ScaledToZero, Message: "Deployment web is scaled to 0"},
		"other": {Status: health.Down, Reason: "NoEndpoints"},
	} {
		have := &workloadObjects{listed: []listedResource{deployment(label), service}, derived: []*unstructured.Unstructured{slice}}
		root := buildTree(&v1alpha1.ThreeportWorkload{}, have, health.Context{Now: goldenTime})
		if root.Status != want.Status || root.Reason != want.Reason || want.Message != "" && root.Message != want.Message {
			t.Errorf("the Pods have the label %q: the workload is %s %s: %q, want %v", label, root.Status, root.Reason, root.Message, want)
		}
		service := root.Children[1]
		if got := service.Children[0].Status; service.Status != want.Status || got != want.Status {
			t.Errorf("the Pods have the label %q: the Service is %s, the EndpointSlice %s, want %s", label, service.Status, got, want.Status)
		}
	}
}

func TestTree_JSONAndYAML(t *testing.T) {
	root, wl := grown(t)
	for name, format := range map[string]string{"tree.json": outputJSON, "tree.yaml": outputYAML} {
		var out bytes.Buffer
		o := &treeOptions{plugin: &plugin{IOStreams: genericiooptions.IOStreams{Out: &out}}, output: output{value: format}}
		if err := o.show(root, reportedStatus(wl)); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

func TestBuildTree_NothingListed(t *testing.T) {
	root := buildTree(&v1alpha1.ThreeportWorkload{}, &workloadObjects{}, health.Context{Now: goldenTime})
	if root.Status != health.Unknown || root.Reason != "NothingListed" {
		t.Errorf("a workload that lists nothing is %s %s, want %s and \"NothingListed\"", root.Status, root.Reason, health.Unknown)
	}
}

func TestBuildTree_ForbiddenSecret_DoesNotCount(t *testing.T) {
	secret := listedResource{
		listed: v1alpha1.WorkloadResourceInstance{Kind: "Secret", Name: "db", Namespace: "app"},
		state:  v1alpha1.ResourceForbidden, message: "secrets in app may not be listed",
	}
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	config.SetUID("1")
	present := listedResource{
		listed: v1alpha1.WorkloadResourceInstance{Kind: "ConfigMap"}, state: v1alpha1.ResourcePresent, object: config,
	}
	forbidden := secret
	forbidden.listed.Kind = "ConfigMap"
	for _, tt := range []struct {
		reason string
		listed []listedResource
		status health.Status
		why    string
	}{
		{"the Secret does not count", []listedResource{secret, present}, health.Healthy, ""},
		{"another forbidden kind counts", []listedResource{forbidden, present}, health.Unknown, "Forbidden"},
		{"nothing else is listed", []listedResource{secret}, health.Unknown, health.NotChecked},
	} {
		root := buildTree(&v1alpha1.ThreeportWorkload{}, &workloadObjects{listed: tt.listed}, health.Context{Now: goldenTime})
		if root.Status != tt.status || root.Reason != tt.why {
			t.Errorf("%s: the workload is %s %q, want %s %q", tt.reason, root.Status, root.Reason, tt.status, tt.why)
		}
	}
}

func TestGroupSimilar_CountsInTheRightNumber(t *testing.T) {
	for hidden, want := range map[int]string{1: "… 1 more Ingress Healthy (--all)", 2: "… 2 more Ingresses Healthy (--all)"} {
		var children []*treeNode
		for range maxSimilar { // listed, so that they are always shown
			children = append(children, &treeNode{Kind: "Ingress", Status: health.Healthy, State: v1alpha1.ResourcePresent})
		}
		for range hidden {
			children = append(children, &treeNode{Kind: "Ingress", Status: health.Healthy})
		}
		if _, got := groupSimilar(children); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRelatedGroups(t *testing.T) {
	groups := map[string]bool{"cluster.x-k8s.io": true, "argoproj.io": true}
	for group, want := range map[string]bool{
		"cluster.x-k8s.io": true, "infrastructure.cluster.x-k8s.io": true, "x-k8s.io": true, "argoproj.io": true,
		"other.x-k8s.io": false, "apps": false, "": false, "notargoproj.io": false,
	} {
		if related(group, groups) != want {
			t.Errorf("%q is related: %t", group, !want)
		}
	}
	for group, want := range map[string]bool{
		"": false, "apps": false, "policy": false, "rbac.authorization.k8s.io": false, "networking.k8s.io": false,
		"gateway.networking.k8s.io": true, "snapshot.storage.k8s.io": true, "argoproj.io": true,
	} {
		if isCustom(group) != want {
			t.Errorf("%q is custom: %t", group, !want)
		}
	}
}

func TestDescendants(t *testing.T) {
	known := []objectMetadata{
		{uid: "pod", owners: []types.UID{"set"}},
		{uid: "set", owners: []types.UID{"root", "other"}},
		{uid: "stranger", owners: []types.UID{"nobody"}},
		{uid: "root", owners: []types.UID{"pod"}},
	}
	var got []string
	for _, f := range descendants(known, map[types.UID]bool{"root": true}) {
		got = append(got, string(f.uid))
	}
	if strings.Join(got, " ") != "set pod" {
		t.Errorf("got %v, want the set and its pod, once each", got)
	}
}
