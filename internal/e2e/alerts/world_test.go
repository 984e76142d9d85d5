package alerts

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// monitoredWorld is a world with a control-plane API and an agent that use mutual TLS, and with a Prometheus and an Alertmanager.
type monitoredWorld struct {
	*world.World
	*monitoring.Monitoring // nil until all programs run
	authority              *certs.TestAuthority
	credentials            string // a folder with ca.crt and the certificates; see issue
	state                  string // a folder
	logs                   *logBackend

	// The settings of a test.

	minute     time.Duration // of the rules
	database   string        // address
	apiFlags   []string      // besides those of all worlds
	agentFlags []string      // besides those of all worlds
	replicas   int           // of the agent
	prepare    func()        // is called when the API runs, before the agent starts

	// The running programs.

	api        *process.Process
	apiAddress string
	agent      *world.Agent
	standby    *world.Agent // nil for one replica
	scraped    []string     // the addresses of the metrics of agents
	deployed   upstream.Deployed
	object     *unstructured.Unstructured // the listed object
}

// newWorld starts everything, with a workload whose first reports are delivered. The functions change the settings before that.
func newWorld(t *testing.T, configure ...func(*monitoredWorld)) *monitoredWorld {
	t.Helper()
	w := &monitoredWorld{
		World: world.New(t, shared.clusters.Take(t)), authority: certs.ForTest(t), credentials: t.TempDir(), state: t.TempDir(),
		logs:   newLogBackend(t),
		minute: monitoring.Minute, replicas: 1, prepare: func() {},
	}
	w.apiAddress = w.FreeAddress()
	w.database = "sqlite:" + filepath.Join(w.state, "controlplane.db")
	w.Must(os.WriteFile(w.credential("ca.crt"), w.authority.PEM(), 0o600))
	for _, name := range []string{"api", "client", "tls"} {
		w.issue(name, time.Time{})
	}
	for _, change := range configure {
		change(w)
	}
	w.startAPI()
	w.Upstream.API = upstream.API{URL: "https://" + w.apiAddress, HTTP: w.client()}
	w.prepare()
	w.startAgent()
	if w.replicas == 2 {
		w.standby = w.startReplica(1)
	}
	w.deployed = w.Deploy("web", world.ConfigMap("conf"))
	w.object = w.Get(w.deployed.Objects[0])
	w.ExpectStatus(w.deployed, "Healthy")
	w.startMonitoring()
	return w
}

// issue writes a certificate and its key, which are valid until a time; with the zero time, beyond all tests. Its name is that of the
// files: api, client for Prometheus and the test, or tls for the agent.
func (w *monitoredWorld) issue(name string, end time.Time) {
	w.Helper()
	cert, key := w.authority.IssueUntil(name, end)
	w.Must(certs.KeyPair{Cert: cert, Key: key}.Write(w.credentials, name))
}

func (w *monitoredWorld) credential(name string) string { return filepath.Join(w.credentials, name) }

// client is a client of the API.
func (w *monitoredWorld) client() *http.Client {
	w.Helper()
	pair, err := tls.LoadX509KeyPair(w.credential("client.crt"), w.credential("client.key"))
	w.Must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority.PEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}}
	w.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// startAPI starts the API, also after its end. An agent is offline earlier than by default, so that the test does not wait for it.
func (w *monitoredWorld) startAPI() {
	w.Helper()
	w.api = w.StartControlPlane(shared.controlAPI, append([]string{
		"--bind-address=" + w.apiAddress, "--database=" + w.database,
		"--cert-file=" + w.credential("api.crt"), "--key-file=" + w.credential("api.key"), "--ca-file=" + w.credential("ca.crt"),
		"--certificate-role=admin", "--agent-timeout=30s",
		"--otlp-logs-endpoint=" + w.logs.url, "--otlp-traces-endpoint=" + w.logs.url,
	}, w.apiFlags...)...)
	_, err := w.api.URL(w.Ctx)
	w.Must(err)
}

// startAgent starts the agent, also after its end.
func (w *monitoredWorld) startAgent() {
	w.Helper()
	w.agent = w.startReplica(0)
	w.AwaitAgent(w.Ctx, w.agent)
}

// startReplica starts a replica of the agent, also after its end.
func (w *monitoredWorld) startReplica(n int) *world.Agent {
	w.Helper()
	flags := slices.Concat([]string{
		"--kubeconfig=" + w.Cluster.AgentKubeconfig, "--threeport-api-server=" + w.apiAddress, "--auth-enabled=true",
		"--cert-dir=" + w.credentials, "--ca-file=" + w.credential("ca.crt"), fmt.Sprintf("--state-dir=%s/agent-%d", w.state, n),
	}, w.agentFlags)
	if n < len(w.scraped) { // Prometheus knows its address
		return w.LaunchAgent(world.Command{Path: shared.agent}, append(flags, "--metrics-bind-address="+w.scraped[n])...)
	}
	replica := w.LaunchAgent(world.Command{Path: shared.agent}, flags...)
	at, err := url.Parse(replica.MetricsURL)
	w.Must(err)
	w.scraped = append(w.scraped, at.Host)
	return replica
}

const scrapes = `
- job_name: threeport-agent
  static_configs: [{targets: [%[1]s]}]
- job_name: threeport-controlplane
  scheme: https
  tls_config: {ca_file: %[3]s/ca.crt, cert_file: %[3]s/client.crt, key_file: %[3]s/client.key}
  static_configs: [{targets: [%[2]q]}]
`

// startMonitoring starts Alertmanager and Prometheus, with the rules of config/monitoring.
func (w *monitoredWorld) startMonitoring() {
	w.Helper()
	rules, err := monitoring.Rules(root)
	w.Must(err)
	w.Monitoring = monitoring.Start(w.World, monitoring.Options{
		Programs: shared.monitoring, Root: root, Minute: w.minute, Rules: rules,
		Scrapes: fmt.Sprintf(scrapes, strings.Join(w.scraped, ", "), w.apiAddress, w.credentials), Targets: len(w.scraped) + 1,
	})
}

func (w *monitoredWorld) write(path, text string) {
	w.Helper()
	w.Must(os.WriteFile(path, []byte(text), 0o600))
}

// get gets a path of the API.
func (w *monitoredWorld) get(path string) (body []byte, status int, err error) {
	req, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, w.Upstream.API.URL+path, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	answer, err := w.Upstream.API.HTTP.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err = io.ReadAll(answer.Body)
	return body, answer.StatusCode, err
}
