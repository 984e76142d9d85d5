package installed

import (
	"path/filepath"

	"github.com/threeport/threeport-agent/internal/e2e/helm"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
)

// Names in config/controlplane.
const (
	apiNamespace = "threeport-control-plane"
	apiName      = "threeport-controlplane" // of the Deployment, and value of the label app.kubernetes.io/name
	apiVolume    = "/var/lib/threeport-controlplane"
)

// installer installs the programs, and waits for their rollouts. The agent has a configuration file, and authenticates with a certificate
// or with a token.
type installer struct {
	api   func(*installation)
	agent func(i *installation, token bool)
}

var installers = map[string]installer{
	"chart":     {api: apiByChart, agent: agentByChart},
	"kustomize": {api: apiByKustomize, agent: agentByKustomize},
}

func apiByKustomize(i *installation) {
	i.Helper()
	i.apply("controlplane")
	i.awaitRollout(apiNamespace, apiName)
}

// apply applies an overlay. The test has changed fields of earlier objects, and owns them.
func (i *installation) apply(overlay string) {
	i.Helper()
	i.kubectl("apply", "--server-side", "--force-conflicts", "-k", filepath.Join("overlay", overlay))
}

func agentByKustomize(i *installation, token bool) {
	i.Helper()
	overlay := "agent"
	if token {
		overlay = "agent-token"
	}
	i.apply(overlay)
	i.awaitRollout(operator.Namespace, operator.Name)
}

func apiByChart(i *installation) {
	i.Helper()
	i.kubectl("apply", "--server-side", "-f", filepath.Join(root, "internal", "e2e", "node", "controlplane", "volume.yaml"))
	i.upgrade(apiNamespace, apiName,
		"--set", "image.repository=localhost/threeport-controlplane", "--set", "image.tag=local", "--set", "image.pullPolicy=Never",
		"--set", "components.controlplane-service-monitor=true", "--set", "components.controlplane-prometheus-rules=true",
	)
}

func agentByChart(i *installation, token bool) {
	i.Helper()
	values := append(operator.ChartValues(),
		"--set", "components.pod-monitor=true", "--set", "components.prometheus-rules=true", "--set", "replicas=2",
		"--set-file", "config="+filepath.Join(root, "config", "components", "config-file", "agent.yaml"),
	)
	if token {
		values = append(values, "--set", "components.agent-token=true", "--set", "threeportApiServer=https://"+operator.APIAddress)
	}
	i.upgrade(operator.Namespace, operator.Name, values...)
}

// upgrade installs or upgrades a release of a chart of the same name. The test has changed fields of earlier objects, and owns them.
func (i *installation) upgrade(namespace, name string, values ...string) {
	i.Helper()
	home := i.TempDir() // Helm neither reads nor writes the user's configuration.
	i.run(helm.Environment(home), shared.helm, append([]string{
		"upgrade", "--install", "--force-conflicts", name, filepath.Join(root, "config", "charts", name), "--namespace", namespace, "--kubeconfig", i.cluster.Kubeconfig(),
	}, values...)...)
	i.awaitRollout(namespace, name)
}
