package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// KubernetesEnv chooses a minor version of Kubernetes, such as 1.35. Without it, clusters have that of the pin kubernetes.
const KubernetesEnv = "THREEPORT_KUBERNETES"

// kubernetesPinName is the pin of the default. Those of further minors have the minor as a suffix, such as kubernetes-1.35.
const kubernetesPinName = "kubernetes"

// KubernetesVersion returns the version of Kubernetes of the clusters that this process starts, such as v1.36.3. It is empty
// if KUBEBUILDER_ASSETS provides the binaries, because their version is not known.
func KubernetesVersion(ctx context.Context) (string, error) {
	chosen, err := chosenMinor()
	if err != nil || assets(os.Getenv(assetsEnv)) != nil {
		return "", err
	}
	root, err := SourceTree()
	if err != nil {
		return "", err
	}
	p, err := kubernetesPin(ctx, root, chosen)
	if err != nil {
		return "", err
	}
	return p.version(ctx, p.source(root))
}

// chosenMinor returns the minor that the environment chooses, or "" for the default.
func chosenMinor() (string, error) {
	chosen := os.Getenv(KubernetesEnv)
	if chosen != "" && os.Getenv(assetsEnv) != "" {
		return "", fmt.Errorf("%s and %s are both set: unset one, because only one of them can choose the binaries", KubernetesEnv, assetsEnv)
	}
	return chosen, nil
}

// kubernetesPin returns the pin of a minor, or that of the default.
func kubernetesPin(ctx context.Context, root, minor string) (pin, error) {
	if minor == "" {
		return newKubernetesPin(kubernetesPinName), nil
	}
	known, err := kubernetesPins(ctx, root)
	if err != nil {
		return pin{}, err
	}
	p, ok := known[minor]
	if !ok {
		return pin{}, fmt.Errorf("%s: %q is not pinned, want one of %s", KubernetesEnv, minor,
			strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return p, nil
}

// kubernetesPins returns the pins of Kubernetes by their minors.
func kubernetesPins(ctx context.Context, root string) (map[string]pin, error) {
	folders, err := filepath.Glob(filepath.Join(root, pinsDir, kubernetesPinName+"-*"))
	if err != nil {
		return nil, fmt.Errorf("list pins of Kubernetes: %w", err)
	}
	known := map[string]pin{}
	for _, folder := range append(folders, kubernetesPinName) {
		p := newKubernetesPin(filepath.Base(folder))
		version, err := p.version(ctx, p.source(root))
		if err != nil {
			return nil, err
		}
		known[minorOf(version)] = p
	}
	return known, nil
}

func newKubernetesPin(name string) pin {
	p := pin{name: name, module: kubernetesModule, packages: map[Component]string{
		APIServer:         kubernetesModule + "/cmd/kube-apiserver",
		ControllerManager: kubernetesModule + "/cmd/kube-controller-manager",
		Scheduler:         kubernetesModule + "/cmd/kube-scheduler",
		Kubectl:           kubernetesModule + "/cmd/kubectl",
	}}
	if name == kubernetesPinName { // the real node is not tested with other minors
		p.packages[Kubelet] = kubernetesModule + "/cmd/kubelet"
	}
	return p
}

// minorOf returns the minor of a version: 1.36 for v1.36.3.
func minorOf(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// version returns the version of the main module in the go.mod of the pin's folder.
func (p pin) version(ctx context.Context, source string) (string, error) {
	raw, err := goTool(ctx, source, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(raw, &mod); err != nil {
		return "", fmt.Errorf("decode go.mod of pin %s: %w", p.name, err)
	}
	for _, r := range mod.Require {
		if r.Path == p.module {
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("pin %s does not require %s: fix %s", p.name, p.module, filepath.Join(source, "go.mod"))
}
