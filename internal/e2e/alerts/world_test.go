package alerts

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// monitoredWorld is a world with a control-plane API and an agent that use mutual TLS, and with a Prometheus and an Alertmanager.
type monitoredWorld struct {
	*world.World
	credentials string // a folder: api.crt, api.key, client.crt, client.key, ca.crt
	state       string // a folder
	api         *process.Process
	apiAddress  string
	agent       *world.Agent
	// metricsAddress is that of the agent.
	metricsAddress string
	object         *unstructured.Unstructured // a listed object

	prometheus string // URL
	received   *notifications
}

// newWorld starts everything, with a workload whose first reports are delivered.
func newWorld(t *testing.T) *monitoredWorld {
	t.Helper()
	w := &monitoredWorld{World: world.New(t, shared.clusters.Take(t)), credentials: t.TempDir(), state: t.TempDir()}
	w.apiAddress = w.FreeAddress()
	w.issueCertificates()
	w.startAPI()
	w.Upstream.API = upstream.API{URL: "https://" + w.apiAddress, HTTP: w.client()}
	w.startAgent()
	w.StartOracle()
	deployed := w.Deploy("web", world.ConfigMap("conf"))
	w.object = w.Get(deployed.Objects[0])
	w.ExpectStatus(deployed, "Healthy")
	w.startMonitoring()
	return w
}

// issueCertificates issues a certificate of the API, and one for all clients.
func (w *monitoredWorld) issueCertificates() {
	w.Helper()
	authority, err := certs.NewAuthority("threeport")
	w.Must(err)
	api, err := authority.Serving("control-plane")
	w.Must(err)
	w.Must(api.Write(w.credentials, "api"))
	client, err := authority.Client("client")
	w.Must(err)
	w.Must(client.Write(w.credentials, "client"))
	w.Must(client.Write(w.credentials, "tls")) // the names that --cert-dir expects
	w.Must(os.WriteFile(w.credential("ca.crt"), authority.CertPEM(), 0o600))
}

func (w *monitoredWorld) credential(name string) string { return filepath.Join(w.credentials, name) }

// client is a client of the API.
func (w *monitoredWorld) client() *http.Client {
	w.Helper()
	pair, err := tls.LoadX509KeyPair(w.credential("client.crt"), w.credential("client.key"))
	w.Must(err)
	authority, err := os.ReadFile(w.credential("ca.crt"))
	w.Must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}}
	w.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// startAPI starts the API, also after its end. An agent is offline earlier than by default, so that the test does not wait for it.
func (w *monitoredWorld) startAPI() {
	w.Helper()
	w.api = w.StartControlPlane(shared.controlAPI, "--bind-address="+w.apiAddress, "--database=sqlite:"+filepath.Join(w.state, "controlplane.db"),
		"--cert-file="+w.credential("api.crt"), "--key-file="+w.credential("api.key"), "--ca-file="+w.credential("ca.crt"),
		"--certificate-role=admin", "--agent-timeout=30s")
	_, err := w.api.URL(w.Ctx)
	w.Must(err)
}

// startAgent starts the agent, also after its end.
func (w *monitoredWorld) startAgent() {
	w.Helper()
	flags := []string{
		"--kubeconfig=" + w.Cluster.AgentKubeconfig, "--threeport-api-server=" + w.apiAddress, "--auth-enabled=true",
		"--cert-dir=" + w.credentials, "--ca-file=" + w.credential("ca.crt"), "--state-dir=" + filepath.Join(w.state, "agent"),
	}
	restarted := w.agent != nil
	if restarted { // Prometheus knows the address of the first one
		flags = append(flags, "--metrics-bind-address="+w.metricsAddress)
	}
	w.agent = w.StartAgent(world.Command{Path: shared.agent}, flags...)
	if !restarted {
		at, err := url.Parse(w.agent.MetricsURL)
		w.Must(err)
		w.metricsAddress = at.Host
	}
}
