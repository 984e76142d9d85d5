package node

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Names in config/controlplane, and the overlay for this cluster.
const (
	planeNamespace  = "threeport-control-plane"
	planeDeployment = "deployment/threeport-controlplane"
	planeOverlay    = "internal/e2e/node/controlplane"
)

// adminToken matches a token in the output of the command that creates it; see docs/access.md.
var adminToken = regexp.MustCompile(`tp_d[0-9A-Za-z]{43}`)

// plane is the control-plane API as it is installed in the cluster, and a viewer's certificate for it.
type plane struct {
	*operatorWorld
	client *http.Client
	url    string
}

// TestControlPlane_InCluster installs the control-plane API as docs/operating.md describes, and replaces its pod. The rows
// stay.
func TestControlPlane_InCluster(t *testing.T) {
	t.Parallel()
	p := plane{operatorWorld: newWorld(t)}
	p.install()
	token := adminToken.FindString(p.inside("token", "create", "--role=admin", "--name=first"))
	p.reach()
	if code, answer := p.call(http.MethodPost, "/v0/workload-instances", token, `{"Name":"kept"}`); code != http.StatusCreated {
		t.Fatalf("the control plane answered the administrator's POST with %d %s, want 201", code, answer)
	}
	p.expectWorkload("kept")
	if code, answer := p.call(http.MethodGet, "/", "", ""); code != http.StatusOK || !strings.Contains(answer, "<!doctype html>") {
		t.Errorf("the control plane answered GET / with %d %s, want the page", code, answer)
	}
	if code, answer := p.call(http.MethodPost, "/v0/workload-instances", "", `{"Name":"other"}`); code != http.StatusForbidden {
		t.Errorf("the control plane answered a viewer's POST with %d %s, want 403", code, answer)
	}

	if backup := p.inside("backup"); !strings.HasPrefix(backup, "SQLite format 3\x00") {
		t.Errorf("the backup of %d bytes begins with %.100q, want a SQLite database", len(backup), backup)
	}
	p.kubectl("rollout", "restart", "-n", planeNamespace, planeDeployment)
	p.awaitPlane()
	p.reach()
	p.expectWorkload("kept")
}

// install follows the administrator's instructions, except for the volume: its folder belongs to root, like a new file system.
func (p *plane) install() {
	p.Helper()
	dir := p.TempDir()
	archive := filepath.Join(dir, "controlplane-image.tar")
	p.Must(image.Target(p.Ctx, root, "controlplane", runtime.GOARCH, archive, "localhost/threeport-controlplane:local"))
	p.Must(shared.cluster.LoadImage(p.Ctx, archive))
	folder, err := shared.cluster.NodeFile("/var/lib/threeport-controlplane")
	p.Must(err)
	p.Must(os.Mkdir(folder, 0o755))

	credentials, err := operator.NewCredentials(dir)
	p.Must(err)
	p.client, err = credentials.Client("jane", "threeport:viewers")
	p.Must(err)
	p.Cleanup(func() {
		_, err := shared.operator.Kubectl(context.WithoutCancel(p.Ctx), "delete", "--ignore-not-found", "-k", filepath.Join(root, planeOverlay))
		p.Must(err)
	})
	p.kubectl("apply", "--server-side", "-f", filepath.Join(root, "config/controlplane/namespace.yaml"))
	p.kubectl("create", "secret", "tls", "threeport-controlplane-cert", "-n", planeNamespace,
		"--cert="+filepath.Join(dir, "api.crt"), "--key="+filepath.Join(dir, "api.key"))
	p.kubectl("create", "secret", "generic", "threeport-controlplane-ca", "-n", planeNamespace,
		"--from-file=tls.crt="+filepath.Join(dir, "api-ca.crt"))
	p.kubectl("apply", "--server-side", "-k", filepath.Join(root, planeOverlay))
	p.awaitPlane()
}

// inside runs a command of the program in its container, and returns its output.
func (p *plane) inside(command ...string) string {
	p.Helper()
	return p.kubectl(append([]string{"exec", "-n", planeNamespace, planeDeployment, "--", "/controlplane"}, command...)...)
}

// awaitPlane waits for a rollout, and fails with the state of the pods.
func (p *plane) awaitPlane() {
	p.Helper()
	if _, err := shared.operator.Kubectl(p.Ctx, "rollout", "status", "-n", planeNamespace, planeDeployment, "--timeout="+world.Timeout.String()); err != nil {
		why, _ := shared.operator.Kubectl(p.Ctx, "get", "pods,pvc,events", "-n", planeNamespace, "-o", "wide")
		logs, _ := shared.operator.Kubectl(p.Ctx, "logs", planeDeployment, "-n", planeNamespace, "--tail=20")
		p.Fatalf("the control-plane API did not become ready: %v\n%s\n%s", err, why, logs)
	}
}

// reach forwards a port to the API's pod until the test ends.
func (p *plane) reach() {
	p.Helper()
	binaries, err := cluster.FindBinaries(p.Ctx, nil, cluster.Kubectl)
	p.Must(err)
	forward, err := process.Start(binaries[cluster.Kubectl], []string{"KUBECONFIG=" + shared.cluster.Kubeconfig()},
		[]string{"port-forward", "-n", planeNamespace, planeDeployment, "--address=127.0.0.1", ":https"})
	p.Must(err)
	p.Cleanup(forward.Kill)
	const prefix = "Forwarding from "
	line, err := forward.WaitFor(p.Ctx, prefix)
	p.Must(err)
	_, rest, _ := strings.Cut(line, prefix)
	address, _, _ := strings.Cut(rest, " ")
	p.url = "https://" + address
}

// expectWorkload expects one workload in the workload list, by its name.
func (p *plane) expectWorkload(name string) {
	p.Helper()
	code, answer := p.call(http.MethodGet, "/v0/workloads", "", "")
	var list threeport.List[threeport.Workload]
	if err := json.Unmarshal([]byte(answer), &list); err != nil || code != http.StatusOK {
		p.Fatalf("the control plane answered GET /v0/workloads with %d %s", code, answer)
	}
	if list.Total != 1 || len(list.Items) != 1 || list.Items[0].Name != name {
		p.Errorf("the workload list is %s, want only %s", answer, name)
	}
}

// call sends a request with an optional token, and returns the status and the body of the answer.
func (p *plane) call(method, path, token, body string) (code int, answer string) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Ctx, method, p.url+path, strings.NewReader(body))
	p.Must(err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.client.Do(req)
	p.Must(err)
	defer resp.Body.Close() //nolint:errcheck // it is only read
	raw, err := io.ReadAll(resp.Body)
	p.Must(err)
	return resp.StatusCode, string(raw)
}
