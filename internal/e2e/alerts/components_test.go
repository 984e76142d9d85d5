package alerts

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// The components for the Prometheus Operator and the dashboards build, beside both installations.
func TestComponents_Build(t *testing.T) {
	t.Parallel()
	binaries, err := cluster.FindBinaries(t.Context(), nil, cluster.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{
		filepath.Join("internal", "e2e", "testdata", "monitoring"): {
			"PodMonitor threeport-agent-system/threeport-agent", "PrometheusRule threeport-agent-system/threeport-agent",
			"ServiceMonitor threeport-control-plane/threeport-controlplane", "PrometheusRule threeport-control-plane/threeport-controlplane",
		},
		filepath.Join("config", "dashboards"): {"ConfigMap /threeport-dashboards"},
	} {
		out, err := exec.CommandContext(t.Context(), binaries[cluster.Kubectl], "kustomize", filepath.Join(root, folder)).Output()
		if err != nil {
			t.Fatalf("build %s: %v", folder, err)
		}
		objects, err := upstream.Parse(string(out))
		if err != nil {
			t.Fatal(err)
		}
		var built []string
		for _, obj := range objects {
			built = append(built, obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName())
		}
		for _, object := range want {
			if !slices.Contains(built, object) {
				t.Errorf("%s has no %s: it has %v", folder, object, built)
			}
		}
	}
}
