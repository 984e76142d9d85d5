package e2e

import (
	"os"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// TestKubernetes_IsChosenVersion checks that the suite runs on the Kubernetes that the environment chooses.
func TestKubernetes_IsChosenVersion(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(shared.clusters.Take(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.ServerVersionWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := cluster.KubernetesVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the API server reports Kubernetes %s", got.GitVersion)
	for _, problem := range versionProblems(got, pinned, os.Getenv(cluster.KubernetesEnv)) {
		t.Error(problem)
	}
}

// kubernetesBefore reports whether an API server is of an earlier Kubernetes than 1.minor.
func kubernetesBefore(t *testing.T, client kubernetes.Interface, minor uint) bool {
	t.Helper()
	info, err := discovery.ToServerVersionInterfaceWithContext(client.Discovery()).ServerVersionWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	return server.LessThan(utilversion.MajorMinor(1, minor))
}

// versionProblems compares a reported version with the pinned version and the chosen minor; both may be empty. The linker sets
// GitVersion from the pin, so the emulated version is compared too, which is a constant of Kubernetes.
func versionProblems(got *version.Info, pinned, minor string) (problems []string) {
	compiled := got.EmulationMajor + "." + got.EmulationMinor
	if pinned != "" && got.GitVersion != pinned {
		problems = append(problems, "the API server reports "+got.GitVersion+", want the pinned "+pinned)
	}
	if !strings.HasPrefix(got.GitVersion, "v"+compiled+".") {
		problems = append(problems, "the API server reports "+got.GitVersion+", but emulates "+compiled)
	}
	if minor != "" && compiled != minor {
		problems = append(problems, "the API server emulates "+compiled+", want the chosen "+minor)
	}
	return problems
}

func TestKubernetes_OtherVersion_IsFound(t *testing.T) {
	tests := []struct {
		reason, reported, compiled, pinned, minor string
		want                                      int
	}{
		{reason: "the default", reported: "v1.36.3", compiled: "36", pinned: "v1.36.3"},
		{reason: "a chosen minor", reported: "v1.35.4", compiled: "35", pinned: "v1.35.4", minor: "1.35"},
		{reason: "binaries of KUBEBUILDER_ASSETS", reported: "v1.36.3", compiled: "36"},
		{reason: "another patch version", reported: "v1.36.3", compiled: "36", pinned: "v1.36.4", minor: "1.36", want: 1},
		{reason: "a choice without effect", reported: "v1.36.3", compiled: "36", pinned: "v1.36.3", minor: "1.35", want: 1},
		{reason: "a binary of another pin", reported: "v1.36.3", compiled: "36", pinned: "v1.35.4", minor: "1.35", want: 2},
		{reason: "staging modules of another minor", reported: "v1.35.4", compiled: "36", pinned: "v1.35.4", minor: "1.35", want: 2},
	}
	for _, tt := range tests {
		info := &version.Info{GitVersion: tt.reported, EmulationMajor: "1", EmulationMinor: tt.compiled}
		if got := versionProblems(info, tt.pinned, tt.minor); len(got) != tt.want {
			t.Errorf("%s: got %q, want %d problems", tt.reason, got, tt.want)
		}
	}
}
