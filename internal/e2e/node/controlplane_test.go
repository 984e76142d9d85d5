package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// tokenPattern matches a token in the output of the command that creates it; see docs/access.md.
var tokenPattern = regexp.MustCompile(`tp_[dv][0-9A-Za-z]{43}`)

// plane is the control-plane API as it is installed in the cluster, and a viewer's token for it.
type plane struct {
	*documented
	url    string
	client *http.Client
	viewer string
}

// TestControlPlane_InCluster installs the control-plane API with the commands of the documents, and replaces its pod. The rows stay. Then
// it runs the other documented commands.
func TestControlPlane_InCluster(t *testing.T) {
	p := plane{documented: newDocumented(newWorld(t))}
	p.install()
	token := tokenPattern.FindString(p.runBlock("docs/operating.md", "token create --role admin --name first"))
	p.write("token", token)
	p.reach()
	p.viewer = tokenPattern.FindString(p.inside("token", "create", "--role=viewer", "--name=page"))
	code, answer := p.call(http.MethodPost, "/v0/workload-instances", token, `{"Name":"kept"}`)
	if code != http.StatusCreated {
		t.Fatalf("the control plane answered the administrator's POST with %d %s, want 201", code, answer)
	}
	p.expectWorkload("kept")
	if code, answer := p.call(http.MethodGet, "/", p.viewer, ""); code != http.StatusOK || !strings.Contains(answer, "<!doctype html>") {
		t.Errorf("the control plane answered GET / with %d %s, want the page", code, answer)
	}
	if code, answer := p.call(http.MethodPost, "/v0/workload-instances", p.viewer, `{"Name":"other"}`); code != http.StatusForbidden {
		t.Errorf("the control plane answered a viewer's POST with %d %s, want 403", code, answer)
	}
	p.runBlocks(instanceID.FindStringSubmatch(answer)[1])

	p.kubectl("rollout", "restart", "-n", planeNamespace, planeDeployment)
	p.awaitPlane()
	p.reach()
	p.expectWorkload("kept")
}

// instanceID matches the ID of a row in an answer of v0.
var instanceID = regexp.MustCompile(`"ID":(\d+)`)

// install follows the administrator's instructions, except for the volume: its folder belongs to root, like a new file system.
func (p *plane) install() {
	p.Helper()
	archive := filepath.Join(p.dir, "controlplane-image.tar")
	p.Must(image.Target(p.Ctx, root, "controlplane", runtime.GOARCH, archive, "localhost/threeport-controlplane:local"))
	p.Must(shared.cluster.LoadImage(p.Ctx, archive))
	folder, err := shared.cluster.NodeFile("/var/lib/threeport-controlplane")
	p.Must(err)
	p.Must(os.Mkdir(folder, 0o755))
	p.Cleanup(func() {
		_, err := shared.operator.Kubectl(context.WithoutCancel(p.Ctx), "delete", "--ignore-not-found", "-k", filepath.Join(root, planeOverlay))
		p.Must(err)
	})
	p.runBlock("docs/operating.md", "openssl req -x509", "path/to/overlay", planeOverlay)
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
	p.reachBy(address)
	authority, err := os.ReadFile(filepath.Join(p.dir, "ca.crt"))
	p.Must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: documentedHost, MinVersion: tls.VersionTLS13}}}
}

// expectWorkload expects one workload in the workload list, by its name.
func (p *plane) expectWorkload(name string) {
	p.Helper()
	code, answer := p.call(http.MethodGet, "/v0/workloads", p.viewer, "")
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
