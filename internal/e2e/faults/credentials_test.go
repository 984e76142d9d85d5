package faults

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// The authorities and both certificates are replaced one after the other, while the agent and the control plane run.
func TestCredentials_Rotated(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutControlPlane(t, shared.clusters.Take(t), reportSets)
	address, serving, client := w.FreeAddress(), t.TempDir(), t.TempDir()
	authority := w.newAuthority(serving)
	w.issueClient(authority, client)
	secure := w.startSecure(address, serving)
	w.setUp("https://" + address)
	w.connect(client)
	w.start("--threeport-api-server="+address, "--auth-enabled=true", "--cert-dir="+client, "--ca-file="+filepath.Join(client, "ca.crt"))
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 10, objects)
	for turn := range 2 {
		w.Eventually("reports over TLS", func() error { return w.expectEvents(20 * (turn + 1)) })
		w.Must(secure.Stop(world.Timeout))
		authority = w.newAuthority(serving)
		secure = w.startSecure(address, serving)
		w.Pause(3 * time.Second) // with an agent that does not know the new authority, nor has a certificate of it
		w.issueClient(authority, client)
		w.connect(client)
	}
	w.Eventually("reports over TLS", func() error { return w.expectEvents(60) })
	load.stop()
	w.awaitAgreement()
}

// newAuthority creates an authority, and a certificate for the control plane.
func (w *faultWorld) newAuthority(serving string) *certs.Authority {
	w.Helper()
	authority, err := certs.NewAuthority("threeport")
	w.Must(err)
	pair, err := authority.Serving("control-plane")
	w.Must(err)
	w.Must(pair.Write(serving, "tls"))
	w.Must(os.WriteFile(filepath.Join(serving, "ca.crt"), authority.CertPEM(), 0o600))
	return authority
}

// issueClient issues a certificate for the agent.
func (w *faultWorld) issueClient(authority *certs.Authority, dir string) {
	w.Helper()
	pair, err := authority.Client("agent")
	w.Must(err)
	w.Must(pair.Write(dir, "tls"))
	w.Must(os.WriteFile(filepath.Join(dir, "ca.crt"), authority.CertPEM(), 0o600))
}

// connect makes the test's own requests use the certificate and the authority in a folder.
func (w *faultWorld) connect(dir string) {
	w.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	w.Must(err)
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	w.Must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}
	w.Cleanup(transport.CloseIdleConnections)
	w.Upstream.API.HTTP = &http.Client{Transport: transport}
}

func (w *faultWorld) startSecure(address, serving string, flags ...string) *process.Process {
	w.Helper()
	secure := w.startControlPlane(append(flags, "--bind-address="+address, "--cert-file="+filepath.Join(serving, "tls.crt"),
		"--key-file="+filepath.Join(serving, "tls.key"), "--ca-file="+filepath.Join(serving, "ca.crt"), "--certificate-role=admin")...)
	_, err := secure.URL(w.Ctx)
	w.Must(err)
	return secure
}

// expectEvents expects at least n rows of Events.
func (w *faultWorld) expectEvents(n int) error {
	rows, err := w.Upstream.API.Events(w.Ctx, nil)
	if err == nil && len(rows) < n {
		err = fmt.Errorf("the control plane has %d rows of Events, want %d", len(rows), n)
	}
	return err
}

// The control plane rejects the agent's credentials for a while. The agent pauses, shows the error in the status, and resumes.
func TestCredentials_Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 20, objects)
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		w.await(w.proxy.Count(proxy.Request.IsWrite)+20, "between the rejections", proxy.Request.IsWrite)
		w.proxy.SetScript(func(proxy.Request) proxy.Fault { return proxy.Fault{Status: status} })
		before, seen := w.proxy.Count(proxy.Any), w.Oracle.EventCount()
		const enough = 120
		w.Eventually(fmt.Sprintf("%d more Events", enough), func() error {
			if n := w.Oracle.EventCount() - seen; n < enough {
				return fmt.Errorf("the cluster has %d more Events", n)
			}
			return nil
		})
		// Some requests were open; then there are a few attempts.
		if n := w.proxy.Count(proxy.Any) - before; n > enough/4 {
			t.Errorf("the agent sent %d requests during answers with %d and %d Events, want at most %d", n, status, enough, enough/4)
		}
		w.Eventually("the error in the workload's status", func() error {
			workload, err := w.ThreeportWorkload(w.deployed[0])
			if err != nil {
				return err
			}
			delivery := workload.Status.Delivery
			if delivery.LastError == "" || delivery.Rejected > 0 {
				return fmt.Errorf("the delivery in the status is %+v", delivery)
			}
			return nil
		})
		w.proxy.SetScript(nil)
	}
	load.stop()
	w.awaitAgreement()
}

// tokenLife is the life of the token in TestCredentials_TokenRenewsItself. A renewal is due after two thirds.
const tokenLife = 45 * time.Second

// The token of the agent ends while it runs. The agent renews it before, as the component agent-token permits, and reports with the new
// one. No kubelet updates the file of the token.
func TestCredentials_TokenRenewsItself(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutControlPlane(t, shared.clusters.Take(t), reportSets)
	address, serving, client := w.FreeAddress(), t.TempDir(), t.TempDir()
	authority := w.newAuthority(serving)
	w.issueClient(authority, client)
	w.startSecure(address, serving, "--require-assignment=false")
	w.setUp("https://" + address)
	w.connect(client)
	w.permitTokenSecret()

	first := w.createToken()
	file := filepath.Join(t.TempDir(), "token")
	w.Must(os.WriteFile(file, []byte(first), 0o600))
	w.Create("{apiVersion: v1, kind: Secret, metadata: {name: threeport-agent-cert}, stringData: {token: " + first + "}}")
	flags := []string{
		"--threeport-api-server=https://" + address, "--auth-enabled=false", "--ca-file=" + filepath.Join(client, "ca.crt"),
		"--token-file=" + file, "--token-secret=" + w.Namespace + "/threeport-agent-cert",
	}
	w.start(flags...)
	objects := w.deployWeb()
	w.awaitAgreement()
	if code := w.tokenStatus(first); code != http.StatusOK {
		t.Fatalf("the first token is answered with %d, want %d", code, http.StatusOK)
	}

	var stored string
	w.EventuallyWithin(tokenLife, "a new token in the Secret", func() error {
		secret, err := w.Client.CoreV1().Secrets(w.Namespace).Get(w.Ctx, "threeport-agent-cert", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if stored = string(secret.Data["token"]); stored == first {
			return errors.New("it has the first one")
		}
		return nil
	})
	w.EventuallyWithin(tokenLife, "the end of the first token", func() error {
		if code := w.tokenStatus(first); code != http.StatusUnauthorized {
			return fmt.Errorf("it is answered with %d", code)
		}
		return nil
	})
	w.awaitRow(w.createEvent(objects[0], "after-end"))

	// The Secret has the token of the next start.
	w.kill()
	w.Must(os.WriteFile(file, []byte(stored), 0o600))
	w.start(flags...)
	w.awaitRow(w.createEvent(objects[0], "after-restart"))
	w.awaitAgreement()
}

// permitTokenSecret gives the agent the Role of the component agent-token.
func (w *faultWorld) permitTokenSecret() {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "components", "agent-token", "role.yaml"))
	w.Must(err)
	role, _, _ := strings.Cut(string(text), "\n---\n")
	w.Create(strings.ReplaceAll(role, "threeport-agent-system", w.Namespace))
	w.Create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: threeport-agent-token}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: threeport-agent-token}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + world.AgentUser + `}]`)
}

// createToken creates a renewable token for the agent with the command of the control plane.
func (w *faultWorld) createToken() string {
	w.Helper()
	system, err := w.Client.CoreV1().Namespaces().Get(w.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	w.Must(err)
	create := exec.CommandContext(w.Ctx, shared.controlAPI, "token", "create", "--role=agent", "--name=cluster-1", "--cluster="+string(system.UID),
		"--expires="+tokenLife.String(), "--renewable", "--database="+w.database)
	token, err := create.Output()
	w.Must(err)
	return strings.TrimSpace(string(token))
}

// tokenStatus is the status of the answer to a request with a token.
func (w *faultWorld) tokenStatus(token string) int {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, w.Upstream.API.URL+"/v0/tokens/own", http.NoBody)
	w.Must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := w.Upstream.API.HTTP.Do(req)
	w.Must(err)
	w.Must(answer.Body.Close())
	return answer.StatusCode
}
