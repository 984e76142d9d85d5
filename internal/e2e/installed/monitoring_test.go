package installed

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
)

// minute is how long a minute of the rules takes. An alert fires after an hour of them.
const minute = time.Second

// prometheusToken is the Secret with the credential of Prometheus, in the namespace of each program.
const prometheusToken = "threeport-prometheus-token"

// createMonitoringKinds creates the kinds of the Prometheus Operator, without their schemas.
func (i *installation) createMonitoringKinds() {
	i.Helper()
	for _, manifest := range monitoring.OperatorKinds() {
		i.AwaitCondition(i.Create(manifest), "Established")
	}
}

// scrapes does what the PodMonitor of the agent and the ServiceMonitor of the API say.
const scrapes = `
- job_name: threeport-agent
  scheme: https
  proxy_url: http://%[1]s
  authorization: {credentials_file: %[2]s/threeport-agent-system.token}
  tls_config: {insecure_skip_verify: true}
  file_sd_configs: [{files: [%[2]s/threeport-agent-system.json]}]
- job_name: threeport-controlplane
  scheme: https
  proxy_url: http://%[1]s
  authorization: {credentials_file: %[2]s/threeport-control-plane.token}
  tls_config: {ca_file: %[2]s/ca.crt, server_name: threeport-api-server.threeport-control-plane.svc}
  file_sd_configs: [{files: [%[2]s/threeport-control-plane.json]}]
`

// startMonitoring starts Alertmanager, and a Prometheus that scrapes all Pods with the credentials of docs/monitoring.md.
func (i *installation) startMonitoring() {
	i.Helper()
	i.kubectl("create", "namespace", "monitoring")
	i.kubectl("create", "serviceaccount", "prometheus", "-n", "monitoring")
	i.kubectl("create", "clusterrolebinding", "threeport-agent-metrics-reader",
		"--clusterrole=threeport-agent-metrics-reader", "--serviceaccount=monitoring:prometheus")
	for namespace, token := range map[string]string{
		operator.Namespace: i.kubectl("create", "token", "prometheus", "-n", "monitoring", "--duration=8760h"),
		apiNamespace:       i.controlplane("token", "create", "--role=viewer", "--name=prometheus"),
	} {
		i.setSecret(namespace, prometheusToken, map[string][]byte{"token": []byte(token)})
		i.write(namespace+".token", token)
	}
	i.write("ca.crt", string(i.authority.CertPEM()))
	discover := func(ctx context.Context) error {
		return i.discover(ctx, map[string]string{operator.Namespace: "8080", apiNamespace: "8443"})
	}
	i.Must(discover(i.Ctx))
	i.Repeat(500*time.Millisecond, discover)
	proxy, err := i.cluster.Proxy(i.Ctx)
	i.Must(err)
	i.Monitoring = monitoring.Start(i.World, monitoring.Options{
		Programs: shared.monitoring, Root: root, Minute: minute, Targets: 3, Scrapes: fmt.Sprintf(scrapes, proxy, i.dir),
		Rules: map[string]string{
			"agent.rules.yaml":        i.rules(operator.Namespace, operator.Name),
			"controlplane.rules.yaml": i.rules(apiNamespace, apiName),
		},
	})
}

func (i *installation) write(name, text string) {
	i.Helper()
	i.Must(os.WriteFile(filepath.Join(i.dir, name), []byte(text), 0o600))
}

// rules returns the rules of an installed PrometheusRule as a file of Prometheus.
func (i *installation) rules(namespace, name string) string {
	i.Helper()
	rule := &unstructured.Unstructured{}
	rule.SetAPIVersion("monitoring.coreos.com/v1")
	rule.SetKind("PrometheusRule")
	rule.SetNamespace(namespace)
	rule.SetName(name)
	text, err := yaml.Marshal(i.Get(rule).Object["spec"])
	i.Must(err)
	return string(text)
}

// targets is a group of targets in a file that Prometheus reads.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discover writes the addresses of the Pods of namespaces, with the ports of their metrics, to files that Prometheus reads.
func (i *installation) discover(ctx context.Context, ports map[string]string) error {
	for namespace, port := range ports {
		pods, err := i.pods(ctx, namespace)
		if err != nil {
			return err
		}
		found := []targets{}
		for _, pod := range pods {
			if pod.Status.PodIP != "" {
				found = append(found, targets{[]string{net.JoinHostPort(pod.Status.PodIP, port)}, map[string]string{"pod": pod.Name}})
			}
		}
		raw, err := json.Marshal(found)
		if err != nil {
			return err
		}
		path := filepath.Join(i.dir, namespace+".json")
		if before, err := os.ReadFile(path); err == nil && string(before) == string(raw) {
			continue
		}
		if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}
