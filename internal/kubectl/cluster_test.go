package kubectl

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

const workloadText = `
apiVersion: control-plane.threeport.io/v1alpha1
kind: ThreeportWorkload
metadata: {name: %s}
spec: {workloadType: WorkloadInstance, workloadInstanceId: 877588458330128385, workloadResourceInstances: [%s]}
`

// workload creates a ThreeportWorkload with a status as the agent writes it.
func workload(t *testing.T, name, status, listed string) *unstructured.Unstructured {
	t.Helper()
	return create(t, workloadText+"status: {%s}\n", name, listed, status)
}

func TestStatus_Cluster(t *testing.T) {
	call(t, "status").want(t, exitHealthy, "There are no ThreeportWorkloads in the cluster.")
	workload(t, "fine", "observedGeneration: 1, health: Healthy, resourceCount: {healthy: 1, total: 1}", "")
	call(t, "status").want(t, exitHealthy, "fine", "Healthy", "1/1")
	workload(t, "bad", "observedGeneration: 1, health: Down, reason: Absent, message: ConfigMap a/b does not exist", "")
	create(t, workloadText, "unseen", "")
	r := call(t, "status")
	r.want(t, exitNotHealthy, "NAME ", "Absent: ConfigMap a/b does not exist", "is the agent running?")
	if bad, unseen, fine := strings.Index(r.out, "bad "), strings.Index(r.out, "unseen "), strings.Index(r.out, "fine "); bad > unseen || unseen > fine {
		t.Errorf("the worst workload is not first:\\n%s", r.out)
	}
	call(t, "status", "--accept", "Down,Unknown").want(t, exitHealthy)
	call(t, "status", "fine").want(t, exitHealthy, "NAME      fine", "WorkloadInstance 877588458330128385")
	call(t, "status", "bad").want(t, exitNotHealthy, "CAUSE     ConfigMap a/b does not exist")
	call(t, "status", "none").want(t, exitUsage, `there is no ThreeportWorkload "none"`)
	call(t, "status", "none", "--watch").want(t, exitUsage, `there is no ThreeportWorkload "none"`)
	call(t, "status", "unsen").want(t, exitUsage, `there is no ThreeportWorkload "unsen": did you mean unseen?`)
	call(t, "tree", "bda").want(t, exitUsage, `there is no ThreeportWorkload "bda": did you mean bad?`)
	call(t, "status", "a", "b").want(t, exitUsage, "2 names: give one, or none for all workloads")
	call(t, "track", "web", "--id", "abc").want(t, exitUsage, `--id: "abc" is not a whole number: see kubectl threeport track --help`)
	call(t, "status", "-o", "xml").want(t, exitUsage, `--output: "xml" is not a format: use wide, json, yaml`)

	var one workloadStatus
	r = call(t, "status", "bad", "-o", "json")
	r.want(t, exitNotHealthy)
	if err := json.Unmarshal([]byte(r.out), &one); err != nil || one.Name != "bad" || one.Status != "Down" || one.ID != 877588458330128385 {
		t.Errorf("status printed %+v, error %v, of %s; want workload bad", one, err, r.out)
	}
	if one.IDText != "877588458330128385" {
		t.Errorf("the ID as text is %q", one.IDText)
	}
	r = call(t, "status", "-o", "json")
	if n := strings.Count(r.out, "\n"); n != 3 {
		t.Errorf("the output has %d lines for 3 workloads:\\n%s", n, r.out)
	}

	r = ask(t, "__complete", "status", "--kubeconfig", shared.kubeconfig, "")
	r.want(t, exitHealthy, "fine\tHealthy\n", "bad\tDown\n", ":4\n")
}

func TestStatus_Namespace_SelectsWorkloads(t *testing.T) {
	workload(t, "listed", "observedGeneration: 1, health: Healthy", "{version: v1, kind: ConfigMap, name: a, namespace: selected}")
	workload(t, "defaulted", "observedGeneration: 1, health: Healthy, resources: [{version: v1, kind: ConfigMap, name: a, namespace: selected, state: Present}]",
		"{version: v1, kind: ConfigMap, name: a}")
	workload(t, "elsewhere", "observedGeneration: 1, health: Down, reason: Absent, message: gone", "{version: v1, kind: ConfigMap, name: a, namespace: other}")
	r := call(t, "status", "-n", "selected")
	r.want(t, exitHealthy, "listed ", "defaulted ")
	if strings.Contains(r.out, "elsewhere") {
		t.Errorf("printed a workload of another namespace:\n%s", r.out)
	}
	create(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: staging}\n")
	call(t, "status", "-n", "staging").want(t, exitHealthy, "No ThreeportWorkload lists an object in the namespace staging.")
	call(t, "status", "-n", "stagin").want(t, exitUsage, `there is no namespace "stagin": did you mean staging?`)
	call(t, "status", "-n", "selectd").want(t, exitUsage, `there is no namespace "selectd": did you mean selected?`)
	call(t, "status", "-n", "nowhere").want(t, exitUsage, `there is no namespace "nowhere": `)

	workload(t, "unconfirmed", "observedGeneration: 1, health: Healthy, confirmedAt: 2026-01-31T11:00:00Z", "{version: v1, kind: ConfigMap, name: a, namespace: other}")
	const silent = "The agent does not report: it was last seen at 2026-01-31T11:00:00Z"
	call(t, "status", "-n", "staging").want(t, exitOutdated, silent, "No ThreeportWorkload lists an object in the namespace staging.")
	call(t, "status", "-n", "staging", "--fresh").want(t, exitHealthy, "No ThreeportWorkload lists an object in the namespace staging.")
	call(t, "status", "-n", "nowhere").want(t, exitUsage, `there is no namespace "nowhere": `)
	call(t, "status", "listed", "-n", "selected").want(t, exitUsage, "-n selects among all workloads")
}

// No agent vouches for these statuses: its Lease has expired or is released, or it confirmed them too long ago.
func TestStatus_AgentNotReporting_IsUnknown(t *testing.T) {
	now := time.Now()
	lease := func(name, holder string, started, renewed time.Time) {
		t.Helper()
		const micro = "2006-01-02T15:04:05.000000Z"
		create(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: default}, spec: {holderIdentity: %q, leaseDurationSeconds: 30, acquireTime: %q, renewTime: %q}}",
			name, holder, started.UTC().Format(micro), renewed.UTC().Format(micro))
	}
	earlier := now.Add(-time.Hour)
	lease("fresh", "pod", earlier, now)
	lease("expired", "pod", earlier, now.Add(-2*time.Minute))
	lease("released", "", earlier, now)
	lease("starting", "pod", now.Add(-2*time.Minute), now)
	lease("just-started", "pod", now.Add(time.Minute), now.Add(time.Minute)) // for longer than the test takes
	for _, tc := range []struct {
		name, lease string
		confirmed   time.Duration // ago
		code        int
	}{
		{"reports", "fresh", 5 * time.Minute, exitHealthy},
		{"hangs", "expired", time.Minute, exitOutdated},
		{"stopped", "released", time.Minute, exitOutdated},
		{"of-the-process-before", "just-started", time.Minute, exitOutdated},
		{"of-the-process-before-and-unchanged", "starting", 5 * time.Minute, exitHealthy},
		{"of-the-new-process", "just-started", -2 * time.Minute, exitHealthy},
		{"unreadable-and-recent", "missing", 5 * time.Minute, exitHealthy},
		{"unreadable-and-old", "missing", time.Hour, exitOutdated},
		{"cannot-be-written", "fresh", time.Hour, exitOutdated},
	} {
		workload(t, tc.name, fmt.Sprintf("observedGeneration: 1, health: Healthy, resourceCount: {healthy: 1, total: 1}, confirmedAt: %q, lease: {namespace: default, name: %s}",
			now.Add(-tc.confirmed).UTC().Format(time.RFC3339), tc.lease), "")
		if tc.code == exitHealthy {
			call(t, "status", tc.name).want(t, tc.code, "STATUS     Healthy")
			continue
		}
		why := "agent not reporting since "
		if tc.lease == "just-started" {
			why = "agent reports again since " + now.Add(time.Minute).UTC().Format(time.RFC3339)
		}
		call(t, "status", tc.name, "--accept", "Unknown").want(t, tc.code, "STATUS     Unknown", why, "last status: Healthy")
		var one workloadStatus
		r := call(t, "status", tc.name, "-o", "json")
		if err := json.Unmarshal([]byte(r.out), &one); err != nil || one.Status != "Unknown" || one.LastStatus != "Healthy" || one.Since == nil || one.Ready != nil ||
			(one.Reason == agentStarting) != (tc.lease == "just-started") {
			t.Errorf("%s: printed %s, error %v; want an Unknown status, the last one, and since when", tc.name, r.out, err)
		}
	}
	call(t, "status", "reports", "--fresh", "--watch").want(t, exitUsage, "--fresh with --watch")
	call(t, "status", "hangs", "--fresh").want(t, exitNotHealthy, "Unknown")
}

// ask runs the plugin as a shell does that completes the last argument.
func ask(t *testing.T, args ...string) result {
	t.Helper()
	return invokeAt(t.Context(), time.Now, "", args...)
}

func TestStatus_UnreachableCluster(t *testing.T) {
	shared.uninstall.want(t, exitCluster, "the cluster does not serve ThreeportWorkloads: install the agent")
	for _, args := range [][]string{{"status"}, {"status", "x"}, {"tree", "x"}, {"track", "x", "--type", "WorkloadInstance", "--id", "1", "cm/a"}} {
		invokeAt(t.Context(), time.Now, "", append(args, "--server", "https://127.0.0.1:1", "--cache-dir", t.TempDir())...).
			want(t, exitCluster, "connection refused", "check --kubeconfig and --context")
		invokeAt(t.Context(), time.Now, "", append(args, "--kubeconfig", "/nowhere/config")...).want(t, exitCluster, "/nowhere/config")
		invokeAt(t.Context(), time.Now, "", append(args, "--kubeconfig", shared.kubeconfig, "--context", "other")...).want(t, exitCluster, "other")
	}
	for _, args := range [][]string{{"status"}, {"status", "-w"}, {"tree", "x"}} {
		invokeAt(t.Context(), time.Now, "", append(args, "--kubeconfig", shared.nobody)...).want(t, exitCluster, "forbidden", "ask for that permission")
	}
}

func TestStatus_WatchOneWorkload(t *testing.T) {
	wl := workload(t, "followed", "observedGeneration: 1, health: Reconciling, reason: Starting, message: Deployment a is starting", "")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	read, write := io.Pipe()
	lines := bufio.NewScanner(read)
	p := &plugin{IOStreams: genericiooptions.IOStreams{Out: write, ErrOut: io.Discard}, now: time.Now}
	done := make(chan int, 1)
	go func() {
		code := p.run(ctx, []string{"status", "followed", "--watch", "--kubeconfig", shared.kubeconfig})
		_ = write.Close()
		done <- code
	}()
	expect := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !lines.Scan() || !strings.Contains(lines.Text(), text) {
				t.Fatalf("got %q, want %q", lines.Text(), text)
			}
		}
	}
	expect("NAME", "Starting: Deployment a is starting")
	wl.Object["status"] = map[string]any{"observedGeneration": int64(1), "health": "Healthy"}
	if _, err := resourceOf(wl).UpdateStatus(ctx, wl, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("Healthy")
	workload(t, "another", "observedGeneration: 1, health: Down, reason: Absent, message: other", "")
	cancel()
	if code := <-done; code != exitHealthy {
		t.Errorf("exit code %d, want that of how it stood when it was interrupted", code)
	}
	if lines.Scan() {
		t.Errorf("status --watch printed another line: %s", lines.Text())
	}
}

func TestStatus_WatchAllWorkloads(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	read, write := io.Pipe()
	decoder := json.NewDecoder(read)
	p := &plugin{IOStreams: genericiooptions.IOStreams{Out: write, ErrOut: io.Discard}, now: time.Now}
	done := make(chan int, 1)
	go func() {
		code := p.run(ctx, []string{"status", "-w", "-o", "json", "--kubeconfig", shared.kubeconfig})
		_ = write.Close()
		done <- code
	}()
	wl := workload(t, "comes", "observedGeneration: 1, health: Down, reason: Absent, message: gone", "")
	expect := func(status string) {
		t.Helper()
		for {
			var s workloadStatus
			if err := decoder.Decode(&s); err != nil {
				t.Fatalf("wait for the status %s: %v", status, err)
			}
			if s.Name == "comes" && string(s.Status) == status {
				return
			}
		}
	}
	expect("Down")
	if err := resourceOf(wl).Delete(ctx, wl.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("Deleted")
	cancel()
	if code := <-done; code != exitHealthy {
		t.Errorf("exit code %d, want %d", code, exitHealthy)
	}
}

// planted is a namespace with a Deployment whose pod crashes, a custom resource with children, and more.
func planted(t *testing.T, namespace string) {
	t.Helper()
	create(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	create(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: %s, labels: {app: web}}\n", namespace)
	create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: %s, labels: {app: web}}\nstringData: {password: hunter2}\n", namespace)
	pod := `{metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example/app}]}}`
	deployment := create(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s, labels: {app: web}}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: %s}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: none}]}
`, namespace, pod)
	owner := func(kind, apiVersion string, u *unstructured.Unstructured) string {
		return fmt.Sprintf("[{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", apiVersion, kind, u.GetName(), u.GetUID())
	}
	set := create(t, `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, namespace: %s, labels: {app: web}, ownerReferences: %s}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: %s}
status: {observedGeneration: 1, replicas: 1}
`, namespace, owner("Deployment", "apps/v1", deployment), pod)
	crashing := create(t, `
apiVersion: v1
kind: Pod
metadata: {name: web-1-a, namespace: %s, labels: {app: web}, ownerReferences: %s}
spec: {containers: [{name: web, image: example/app}]}
status: {phase: Running, containerStatuses: [{name: web, image: example/app, imageID: x, ready: false, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 7, reason: Error}}}]}
`, namespace, owner("ReplicaSet", "apps/v1", set))
	create(t, `
apiVersion: v1
kind: Event
metadata: {name: web-1-a.1, namespace: %s}
type: Warning
reason: BackOff
message: Back-off restarting failed container
lastTimestamp: "2026-01-01T00:00:00Z"
involvedObject: {kind: Pod, namespace: %s, name: web-1-a, uid: %s}
`, namespace, namespace, crashing.GetUID())
	// Anybody who may create Events can name the pod's UID.
	create(t, `
apiVersion: v1
kind: Event
metadata: {name: other.1, namespace: %s}
type: Warning
reason: Forged
message: not about this pod
lastTimestamp: "2026-01-01T00:01:00Z"
involvedObject: {kind: Pod, namespace: %s, name: other, uid: %s}
`, namespace, namespace, crashing.GetUID())
	engine := create(t, "apiVersion: example.com/v1\nkind: Engine\nmetadata: {name: v8, namespace: %s, labels: {app: engine}}\nstatus: {conditions: [{type: Ready, status: \"True\"}]}\n", namespace)
	create(t, "apiVersion: parts.example.com/v1\nkind: Piston\nmetadata: {name: one, namespace: %s, ownerReferences: %s}\nstatus: {phase: Failed}\n",
		namespace, owner("Engine", "example.com/v1", engine))
	create(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: engine, namespace: %s, ownerReferences: %s}\n",
		namespace, owner("Engine", "example.com/v1", engine))
	create(t, `
apiVersion: v1
kind: Pod
metadata: {name: labelled, namespace: %s, labels: {control-plane.threeport.io/workload-instance: "877588458330128385"}}
spec: {containers: [{name: web, image: example/app}]}
`, namespace)
}

func TestTree_Cluster(t *testing.T) {
	planted(t, "garden")
	workload(t, "plant", "observedGeneration: 1, health: Healthy", `
  {version: v1, kind: ConfigMap, name: conf, namespace: garden}, {version: v1, kind: Secret, name: key, namespace: garden},
  {group: apps, version: v1beta1, kind: Deployment, name: web}, {group: example.com, version: v1, kind: Engine, name: v8, namespace: garden},
  {version: v1, kind: Service, name: absent, namespace: garden}, {group: example.org, version: v1, kind: Ghost, name: x, namespace: garden}`)

	create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: thicket}}")
	create(t, `
apiVersion: v1
kind: Pod
metadata: {name: weed, namespace: thicket, labels: {control-plane.threeport.io/workload-instance: "877588458330128385"}}
spec: {containers: [{name: web, image: example/app}]}
`)

	r := call(t, "tree", "plant", "-o", "wide")
	r.want(t, exitNotHealthy, "└─ Pod web-1-a", "CrashLoopBackOff", "BackOff", "Service garden/absent does not exist", "KindNotInstalled", "Piston one",
		"Pod garden/labelled", "Secret garden/key", "The agent reports Healthy")
	if !strings.Contains(r.err, "1 object has the label of ThreeportWorkload plant in a namespace where it does not count") || !strings.Contains(r.err, "pods thicket/weed") {
		t.Errorf("the messages do not name the labelled pod of another namespace: %s", r.err)
	}
	for _, text := range []string{"hunter2", "ConfigMap engine", "weed"} {
		if strings.Contains(r.out, text) {
			t.Errorf("the tree contains %q:\\n%s", text, r.out)
		}
	}
	call(t, "tree", "plant", "--all-kinds").want(t, exitNotHealthy, "ConfigMap engine", "Piston one")

	var root treeNode
	r = call(t, "tree", "plant", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &root); err != nil {
		t.Fatal(err)
	}
	if root.Status != "Down" || len(root.Children) != 7 {
		t.Fatalf("the root is %s with %d children, want Down with 7:\\n%s", root.Status, len(root.Children), r.out)
	}
	for i, want := range []string{"ConfigMap Healthy", "Secret Healthy", "Deployment Down", "Engine", "Service Down", "Ghost Unknown", "Pod"} {
		if b := root.Children[i]; !strings.HasPrefix(b.Kind+" "+string(b.Status), want) {
			t.Errorf("child %d is %s %s, want %s", i, b.Kind, b.Status, want)
		}
	}
	pod := root.Children[2].Children[0].Children[0]
	if pod.Kind != "Pod" || pod.Warning == nil || pod.Warning.Reason != "BackOff" {
		t.Errorf("the pod is %+v, its warning %+v; want BackOff", pod, pod.Warning)
	}
	call(t, "tree", "none").want(t, exitUsage, "there is no ThreeportWorkload")
	call(t, "tree").want(t, exitUsage, "give the name of a ThreeportWorkload")
}

// gardener returns the kubeconfig of a user who may list ConfigMaps and ThreeportWorkloads only.
func gardener(t *testing.T) string {
	t.Helper()
	kubeconfig, _, err := shared.api.User("gardener")
	if err != nil {
		t.Fatal(err)
	}
	create(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gardener}
rules: [{apiGroups: ["", control-plane.threeport.io], resources: [configmaps, threeportworkloads], verbs: [list]}]
`)
	create(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gardener}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gardener}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: gardener}]
`)
	for range 1000 { // until the API server has seen the role
		if r := invokeAt(t.Context(), time.Now, "", "status", "--kubeconfig", kubeconfig); r.code != exitCluster || !pause(t.Context(), 50*time.Millisecond) {
			break
		}
	}
	return kubeconfig
}

func TestTree_Forbidden(t *testing.T) {
	planted(t, "fenced")
	workload(t, "shy", "", "{version: v1, kind: ConfigMap, name: conf, namespace: fenced}, {group: apps, version: v1, kind: Deployment, name: web, namespace: fenced}")
	r := invokeAt(t.Context(), time.Now, "", "tree", "shy", "--kubeconfig", gardener(t))
	r.want(t, exitNotHealthy, "ConfigMap fenced/conf", "Forbidden", "deployments.apps in fenced may not be listed", "pods in fenced may not be listed")
}

// twoGardens creates the ThreeportWorkloads north and south, each with a ConfigMap in a namespace of its own.
func twoGardens(t *testing.T, prefix string) {
	t.Helper()
	for _, name := range []string{"north", "south"} {
		create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s-%s}}", prefix, name)
		create(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: %s-%s}}", prefix, name)
		workload(t, name, "", fmt.Sprintf("{version: v1, kind: ConfigMap, name: conf, namespace: %s-%s}", prefix, name))
	}
}

func TestStatusFresh_Forbidden_NotesUnreadableKinds(t *testing.T) {
	twoGardens(t, "noted")
	r := invokeAt(t.Context(), time.Now, "", "status", "--fresh", "--kubeconfig", gardener(t))
	r.want(t, exitHealthy, "pods in noted-north may not be listed, so some may be missing here", "events in noted-south may not be listed")
	notes := strings.Split(strings.TrimSuffix(r.err, "\n"), "\n")
	seen := map[string]bool{}
	for _, note := range notes {
		if text := strings.TrimSpace(strings.TrimPrefix(note, "kubectl-threeport:")); text == "" || seen[text] {
			t.Errorf("the note %q is empty or repeated:\n%s", note, r.err)
		} else {
			seen[text] = true
		}
	}
	r = call(t, "status", "--fresh")
	r.want(t, exitHealthy)
	if r.err != "" {
		t.Errorf("an administrator, who may list everything, gets the notes %s", r.err)
	}
}

func TestObjectReader_EachWorkloadHasItsOwnNotes(t *testing.T) {
	twoGardens(t, "read")
	cluster := newConnection(&cobra.Command{})
	*cluster.flags.KubeConfig = gardener(t)
	reader, err := newObjectReader(cluster, false)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, name := range []string{"north", "south"} {
		list, err := cluster.workloads(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		have, err := reader.readWorkload(t.Context(), &list[0])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, have.incomplete)
	}
	for i, name := range []string{"north", "south"} {
		if !slices.IsSorted(got[i]) || !slices.Contains(got[i], "pods in read-"+name+" may not be listed, so some may be missing here") {
			t.Errorf("the notes of %s are %q, want sorted ones about its Pods", name, got[i])
		}
		other := []string{"read-south", "read-north"}[i]
		if slices.ContainsFunc(got[i], func(note string) bool { return note == "" || strings.Contains(note, other) }) {
			t.Errorf("the notes of %s are %q, want no empty ones and none about %s", name, got[i], other)
		}
	}
}

func TestTrack(t *testing.T) {
	planted(t, "tracked")
	base := []string{"track", "mine", "--type", "WorkloadInstance", "--id", "877588458330128385", "-n", "tracked"}
	read := func(args ...string) v1alpha1.ThreeportWorkload {
		t.Helper()
		r := call(t, append(base, args...)...)
		r.want(t, exitHealthy)
		var wl v1alpha1.ThreeportWorkload
		if err := yaml.UnmarshalStrict([]byte(r.out), &wl); err != nil {
			t.Fatal(err)
		}
		if wl.Name != "mine" || wl.Kind != "ThreeportWorkload" || wl.Spec.WorkloadInstanceID != 877588458330128385 {
			t.Errorf("track printed %s, want the workload mine", r.out)
		}
		return wl
	}
	listed := func(wl v1alpha1.ThreeportWorkload) string {
		var out []string
		for _, r := range wl.Spec.WorkloadResourceInstances {
			out = append(out, fmt.Sprintf("%s/%s/%s %s/%s %d", r.Group, r.Version, r.Kind, r.Namespace, r.Name, r.ThreeportID))
		}
		return strings.Join(out, "\n")
	}
	file := filepath.Join(t.TempDir(), "objects.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: tracked, namespace: x}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct {
		args []string
		want string
	}{
		"by names": {
			[]string{"deploy/web=877588462010892289", "configmaps/conf", "Engine.v1.example.com/v8=9007199254740993", "eng/v8", "ns/tracked"}[:3],
			"apps/v1/Deployment tracked/web 877588462010892289\n/v1/ConfigMap tracked/conf 0\nexample.com/v1/Engine tracked/v8 9007199254740993",
		},
		"of the cluster": {[]string{"ns/tracked", "eng/v8"}, "/v1/Namespace /tracked 0\nexample.com/v1/Engine tracked/v8 0"},
		"by a selector": {
			[]string{"-l", "app=web", "secret/key=7"},
			"/v1/Secret tracked/key 7\n/v1/ConfigMap tracked/conf 0\napps/v1/Deployment tracked/web 0",
		},
		"in all namespaces": {[]string{"-l", "app=web", "-A", "--kinds", "deployments,cm", "-n", "default"}, "apps/v1/Deployment tracked/web 0\n/v1/ConfigMap tracked/conf 0"},
		"among kinds":       {[]string{"-l", "app=engine", "--kinds", "engines.example.com"}, "example.com/v1/Engine tracked/v8 0"},
		"among all kinds":   {[]string{"-l", "app=engine", "--kinds", "all"}, "example.com/v1/Engine tracked/v8 0"},
		"by files":          {[]string{"-f", file, "cm/conf=5"}, "/v1/ConfigMap tracked/conf 5\n/v1/Namespace /tracked 0"},
		"missing objects":   {[]string{"--allow-missing", "sts/db"}, "apps/v1/StatefulSet tracked/db 0"},
	} {
		t.Run(reason, func(t *testing.T) {
			if got := listed(read(tc.args...)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
	for reason, tc := range map[string]struct {
		args []string
		text string
	}{
		"nothing":                         {nil, "nothing to track: give objects as KIND/NAME"},
		"no name":                         {[]string{"deploy"}, `"deploy" is not KIND/NAME or KIND/NAME=ID`},
		"an unknown kind":                 {[]string{"ghosts/x"}, `the cluster does not serve the kind "ghosts"`},
		"an absent object":                {[]string{"deploy/none"}, "Deployment tracked/none does not exist: create it first, or give --allow-missing"},
		"an ID that is none":              {[]string{"deploy/web=1e9"}, `the ID "1e9" is not a whole number`},
		"an ID too large":                 {[]string{"deploy/web=9223372036854775808"}, "is not a whole number"},
		"an ID twice":                     {[]string{"deploy/web=5", "cm/conf=5"}, "have the same ID 5"},
		"an object twice":                 {[]string{"deploy/web", "deployments/web"}, `"Deployment tracked/web" is given twice`},
		"an Event":                        {[]string{"event/web-1-a.1"}, "Events cannot be tracked"},
		"a ThreeportWorkload":             {[]string{"threeportworkload/x"}, "cannot be tracked"},
		"a selector that matches nothing": {[]string{"-l", "app=none"}, "matches nothing in the namespace tracked"},
		"a selector that is none":         {[]string{"-l", "a in"}, "--selector"},
		"kinds without a selector":        {[]string{"--kinds", "pods", "cm/conf"}, "give one with -l"},
		"force without apply":             {[]string{"--force-conflicts", "cm/conf"}, "needs --apply"},
		"a file that is not there":        {[]string{"-f", "nowhere.yaml"}, "nowhere.yaml"},
		"another type":                    {[]string{"--type", "Pod", "cm/conf"}, `--type: "Pod" is not a workload type: use WorkloadInstance or HelmWorkloadInstance`},
		"no ID":                           {[]string{"--id", "0", "cm/conf"}, "--id: give the ID of the WorkloadInstance"},
	} {
		t.Run(reason, func(t *testing.T) { call(t, append(base, tc.args...)...).want(t, exitUsage, tc.text) })
	}
	call(t, "track", "Mine", "--type", "WorkloadInstance", "--id", "1", "cm/conf").want(t, exitUsage, `"Mine" cannot be the name`)
	call(t, "track").want(t, exitUsage, "the name of the ThreeportWorkload is missing")
	r := ask(t, "__complete", "track", "--kubeconfig", shared.kubeconfig, "mine", "-n", "tracked", "cm/")
	r.want(t, exitHealthy, "cm/conf\n")
	ask(t, "__complete", "track", "--kubeconfig", shared.kubeconfig, "mine", "").want(t, exitHealthy, "deployments/\n")
	ask(t, "__complete", "track", "--kubeconfig", shared.kubeconfig, "mine", "--type", "").want(t, exitHealthy, "HelmWorkloadInstance\n")
	ask(t, "__complete", "track", "--kubeconfig", shared.kubeconfig, "mine", "-n", "").want(t, exitHealthy, "tracked\n")
}

func TestTrack_Apply(t *testing.T) {
	planted(t, "applied")
	base := []string{"track", "applied", "--type", "HelmWorkloadInstance", "--id", "877588458330128387", "-n", "applied", "--apply"}
	call(t, append(base, "deploy/web=9007199254740993", "cm/conf")...).want(t, exitHealthy, "ThreeportWorkload applied lists 2 objects")
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	t.Cleanup(func() {
		if err := resourceOf(stored).Delete(context.WithoutCancel(t.Context()), "applied", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	look := func() []any {
		t.Helper()
		u, err := resourceOf(stored).Get(t.Context(), "applied", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		listed, _, err := unstructured.NestedSlice(u.Object, "spec", "workloadResourceInstances")
		if err != nil {
			t.Fatal(err)
		}
		return listed
	}
	if first := look(); len(first) != 2 || first[0].(map[string]any)["threeportID"] != int64(9007199254740993) {
		t.Errorf("the workload lists %v, want two resources", first)
	}
	call(t, append(base, "cm/conf")...).want(t, exitHealthy, "lists 1 object")
	if second := look(); len(second) != 1 {
		t.Errorf("the workload lists %v, want only the ConfigMap", second)
	}
	u, err := resourceOf(stored).Get(t.Context(), "applied", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(u.Object, int64(3), "spec", "workloadInstanceId"); err != nil {
		t.Fatal(err)
	}
	if _, err := resourceOf(stored).Update(t.Context(), u, metav1.UpdateOptions{FieldManager: "upstream"}); err != nil {
		t.Fatal(err)
	}
	call(t, append(base, "cm/conf")...).want(t, exitUsage, "conflict", "--force-conflicts takes these fields over")
	call(t, append(base, "cm/conf", "--force-conflicts")...).want(t, exitHealthy)
	invokeAt(t.Context(), time.Now, "", append(base, "--kubeconfig", shared.nobody, "cm/conf", "--allow-missing")...).want(t, exitCluster, "forbidden")
}
