package kubectl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

const agentDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: threeport-agent
  namespace: default
  labels: {app.kubernetes.io/name: threeport-agent}
  annotations: {example.org/note: planted-annotation, kubectl.kubernetes.io/last-applied-configuration: planted-manifest}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: threeport-agent}}
  template:
    metadata: {labels: {app.kubernetes.io/name: threeport-agent}}
    spec:
      serviceAccountName: reporter
      containers:
      - name: agent
        image: threeport-agent:v1.2.3
        args: [--threeport-api-server=https://user:planted-userinfo@threeport.example.org]
        env: [{name: INNOCENT, value: planted-environment}, {name: GOGC, value: "50"}]
        volumeMounts: [{name: cert, mountPath: /etc/threeport/cert}]
      volumes: [{name: cert, secret: {secretName: agent-certificate}}]
`

// installAgent creates the objects of an agent that does not run, with planted secrets.
func installAgent(t *testing.T) {
	t.Helper()
	authority := certs.ForTest(t)
	create(t, agentDeployment)
	create(t, `{apiVersion: v1, kind: Secret, metadata: {name: agent-certificate, namespace: default}, data: {tls.crt: %s, tls.key: %s}}`,
		base64.StdEncoding.EncodeToString(authority.PEM()), base64.StdEncoding.EncodeToString([]byte("planted-key")))
	create(t, `{apiVersion: v1, kind: Event, metadata: {name: planted, namespace: default}, type: Warning, reason: Planted,
message: "refused: Authorization: Bearer planted-event-token", involvedObject: {kind: Pod, name: threeport-agent, namespace: default}}`)
	create(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: doctor-agent},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
subjects: [{kind: ServiceAccount, namespace: default, name: reporter}]}`)
	workload(t, "doctored", "observedGeneration: 1, health: Healthy, confirmedAt: 2026-01-31T11:00:00Z",
		"{version: v1, kind: ConfigMap, name: a, namespace: default}")
}

func TestDoctor_Cluster(t *testing.T) {
	r := call(t, "doctor")
	r.want(t, exitNotHealthy, "No Deployment with the label app.kubernetes.io/name=threeport-agent exists in any namespace.", "Install the agent")

	installAgent(t)
	r = call(t, "doctor")
	r.want(t, exitNotHealthy,
		"crd: The CustomResourceDefinition has the schema of this version.",
		"agent: The Deployment default/threeport-agent has 0 of 1 replica available.",
		"statuses: The statuses of 1 of 1 ThreeportWorkload are outdated (AgentNotReporting): doctored.",
		"permissions: The ServiceAccount default/reporter lacks 6 permissions for its own work:",
		"kubectl threeport rbac --agent-namespace default --agent-service-account reporter",
		"certificates: tls.crt of the Secret default/agent-certificate (--cert-dir) is valid until")
	if strings.Contains(r.out+r.err, "planted-") {
		t.Errorf("printed a planted secret:\n%s", r.out)
	}
	call(t, "doctor", "-n", "kube-system").want(t, exitNotHealthy, "exists in kube-system.")

	var report doctorReport
	r = call(t, "doctor", "-o", "json")
	r.want(t, exitNotHealthy)
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || report.Kubernetes == "" || len(report.Findings) == 0 {
		t.Errorf("printed %s: %v, want a report", r.out, err)
	}
	call(t, "doctor", "-o", "wide").want(t, exitUsage, `--output: "wide" is not a format: use json, yaml`)
	call(t, "doctor", "web").want(t, exitUsage)
}

// An object that the user may not read is no fault of the agent.
func TestDoctor_WithoutPermissions_IsNotChecked(t *testing.T) {
	installAgent(t)
	r := invokeAt(t.Context(), time.Now, "", "doctor", "--kubeconfig", shared.nobody)
	r.want(t, exitHealthy, "you lack list deployments.apps in all namespaces; you lack list deployments.apps in threeport-agent-system.",
		"you lack list pods in all namespaces", "you lack get leases.coordination.k8s.io in threeport-agent-system",
		"you lack list threeportworkloads.control-plane.threeport.io", "you lack create subjectaccessreviews",
		"you lack get customresourcedefinitions.apiextensions.k8s.io")
	if strings.Contains(r.out, "error ") {
		t.Errorf("reported an error:\n%s", r.out)
	}
}

func TestDoctor_Unreachable(t *testing.T) {
	r := invokeAt(t.Context(), time.Now, "", "doctor", "--server", "https://127.0.0.1:1", "--kubeconfig", shared.kubeconfig)
	r.want(t, exitCluster, "ask for the version of the cluster", "connection refused")
}

// readBundle returns the files of a bundle by their names.
func readBundle(t *testing.T, in io.Reader) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(header.Name, bundleFolder) || path.Clean(header.Name) != header.Name {
			t.Errorf("the bundle has the file %s, want only files in %s", header.Name, bundleFolder)
		}
		files[strings.TrimPrefix(header.Name, bundleFolder)] = string(text)
	}
}

func expectNoSecrets(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		encoded := base64.StdEncoding.EncodeToString([]byte("planted-"))[:10]
		if strings.Contains(text, "planted-") || strings.Contains(text, encoded) {
			t.Errorf("%s has a planted secret:\n%s", name, text)
		}
		if strings.Contains(text, "managedFields") {
			t.Errorf("%s has managed fields", name)
		}
	}
}

func TestDoctor_Bundle_HasNoSecrets(t *testing.T) {
	installAgent(t)
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	call(t, "doctor", "--bundle", file).want(t, exitNotHealthy, "has 0 of 1 replica available", file+" has the findings")
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	if info, err := in.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode of the bundle is %v, error %v; want 0600", info.Mode(), err)
	}
	files := readBundle(t, in)
	for name, want := range map[string]string{
		"report.txt":              "The Deployment default/threeport-agent has 0 of 1 replica",
		"report.json":             `"pluginVersion":"v1.2.3"`,
		"deployments.yaml":        "name: INNOCENT",
		"threeportworkloads.yaml": "name: doctored",
		"events.yaml":             "Planted",
		"crd.yaml":                "name: threeportworkloads.control-plane.threeport.io",
		"roles.yaml":              "name: doctor-agent",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	if text := files["deployments.yaml"]; !strings.Contains(text, `value: "50"`) {
		t.Errorf("the harmless value of GOGC is redacted:\n%s", text)
	}
	expectNoSecrets(t, files)
	if others, err := os.ReadDir(filepath.Dir(file)); err != nil || len(others) != 1 {
		t.Errorf("the folder has %v, error %v; want only the bundle", others, err)
	}

	call(t, "doctor", "--bundle", file).want(t, exitUsage, file+" exists: give another name, or remove it")
	call(t, "doctor", "--bundle", filepath.Join(file, "x")).want(t, exitUsage, "--bundle: ")
	call(t, "doctor", "--bundle", filepath.Join(t.TempDir(), "none", "x")).want(t, exitUsage, "is not a folder")
}

func TestDoctor_Bundle_WithoutPermissions_NamesMissingFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	invokeAt(t.Context(), time.Now, "", "doctor", "--kubeconfig", shared.nobody, "--bundle", file).want(t, exitHealthy)
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	files := readBundle(t, in)
	for _, want := range []string{"deployments.yaml: you lack list deployments.apps", "roles.yaml: you lack list clusterrolebindings", "events.yaml: you lack"} {
		if !strings.Contains(files[bundleMissing], want) {
			t.Errorf("%s has no %q:\n%s", bundleMissing, want, files[bundleMissing])
		}
	}
}

// recordedLogs are logs by POD/CONTAINER, with "/previous" for that before a restart.
type recordedLogs map[string]string

func (l recordedLogs) open(_ context.Context, pod *corev1.Pod, container string, previous bool) (io.ReadCloser, error) {
	name := pod.Name + "/" + container
	if previous {
		name += "/previous"
	}
	text, ok := l[name]
	if !ok {
		return nil, errors.New("the kubelet does not answer")
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func TestBundle_Logs_AreBoundedAndRedacted(t *testing.T) {
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent"}, {Name: "sidecar"}}}}
	pod.Namespace, pod.Name = "agents", "agent-0"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", RestartCount: 2}}
	logs := recordedLogs{
		"agent-0/agent": strings.Repeat("an early line\n", maxLogBytes/10) + "GET https://user:planted-1@host\n" +
			"Authorization: Bearer planted-2-token\n" + `{"token":"planted-3","msg":"kept"}` + "\n" +
			"-----BEGIN PRIVATE KEY-----\nplanted-4\n-----END PRIVATE KEY-----\npassword=planted-5 --token-file=/etc/threeport/cert/token\n" +
			"eyJhbGciOiJIUzI1NiJ9.eyJwbGFudGVkLTYi.planted-6\nthe last line\n",
		"agent-0/agent/previous": "panic: out of luck\n",
	}
	var out bytes.Buffer
	b := &bundle{now: goldenTime}
	err := b.write(&out, func() error {
		return errors.Join(b.addLogs(t.Context(), logs, []corev1.Pod{pod}), b.addMissing())
	})
	if err != nil {
		t.Fatal(err)
	}
	files := readBundle(t, &out)
	current := files["logs/agents/agent-0/agent.log"]
	if !strings.HasSuffix(current, "the last line\n") || !strings.HasPrefix(current, "an early line\n") || len(current) > maxLogBytes {
		t.Errorf("the log has %d bytes, from %.40q to %q; want whole lines up to the last", len(current), current, current[max(0, len(current)-40):])
	}
	for _, kept := range []string{`"msg":"kept"`, "--token-file=/etc/threeport/cert/token", "GET https://[redacted]@host"} {
		if !strings.Contains(current, kept) {
			t.Errorf("the log has no %q:\n%s", kept, current[max(0, len(current)-500):])
		}
	}
	if files["logs/agents/agent-0/agent.previous.log"] != "panic: out of luck\n" {
		t.Errorf("the bundle has %d files, without the log before the restart", len(files))
	}
	for _, want := range []string{"agent.log: all but the last 5 MiB", "sidecar.log: the kubelet does not answer"} {
		if !strings.Contains(files[bundleMissing], want) {
			t.Errorf("%s has no %q: %s", bundleMissing, want, files[bundleMissing])
		}
	}
	expectNoSecrets(t, files)
}

// The API server limits the lines, so that a large log is not sent as a whole.
func TestPodLogs_RequestsTheLastLines(t *testing.T) {
	requests := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path + "?" + r.URL.Query().Encode()
		_, _ = io.WriteString(w, "a line\n")
	}))
	defer server.Close()
	client, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "agents", "agent-0"
	text, cut, err := readLog(t.Context(), &podLogs{client}, pod, "agent", true)
	if err != nil || cut || string(text) != "a line\n" {
		t.Errorf("the log is %q, cut %t, error %v; want the line of the server", text, cut, err)
	}
	const want = "/api/v1/namespaces/agents/pods/agent-0/log?container=agent&previous=true&tailLines=50000"
	if got := <-requests; got != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
}

// The folder is as before if the bundle cannot be written.
func TestWriteNewFile_Failure_LeavesNothing(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "bundle.tar.gz")
	err := writeNewFile(file, func(out io.Writer) error {
		_, _ = out.Write([]byte("half"))
		return errors.New("no space left on device")
	})
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("the error is %v, want that of the writer", err)
	}
	if others, err := os.ReadDir(folder); err != nil || len(others) != 0 {
		t.Errorf("the folder has %v, error %v; want nothing", others, err)
	}
	// Somebody else creates the file meanwhile.
	err = writeNewFile(file, func(io.Writer) error { return os.WriteFile(file, []byte("theirs"), 0o600) })
	if err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("the error is %v, want that the file exists", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "theirs" {
		t.Errorf("the file has %q, error %v; want that of the other writer", text, err)
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		t.Error("the file was removed")
	}
}
