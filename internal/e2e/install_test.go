package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// Names in config/default.
const (
	installNamespace = "threeport-agent-system"
	installUser      = "system:serviceaccount:threeport-agent-system:threeport-agent"
	installLease     = "threeport-agent.control-plane.threeport.io"
	installCRD       = "threeportworkloads.control-plane.threeport.io"
	installWorkloads = "/apis/control-plane.threeport.io/v1alpha1/threeportworkloads"
)

// TestInstallation installs the agent on one API server without an agent. Its subtests run one after the other: the first ones
// expect that less is installed.
func TestInstallation(t *testing.T) {
	t.Parallel()
	target := newInstallTarget(t)
	for _, test := range []struct {
		name string
		run  func(installTarget)
	}{
		{name: "IsAccepted", run: installationIsAccepted},
		{name: "CRD_RejectsInvalidSpecs", run: crdRejectsInvalidSpecs},
		{name: "CRD_KeepsLargeIDs", run: crdKeepsLargeIDs},
		{name: "CRD_AcceptsLargeSpecs", run: crdAcceptsLargeSpecs},
		{name: "CRD_AcceptsLargeStatus", run: crdAcceptsLargeStatus},
		{name: "PermitsOnlyReading", run: installationPermitsOnlyReading},
		{name: "PermitsBuiltInKinds", run: installationPermitsBuiltInKinds},
		{name: "AggregatesRoles", run: installationAggregatesRoles},
		{name: "UpgradesWildcardRole", run: installationUpgradesWildcardRole},
		{name: "ExtendsUserRoles", run: installationExtendsUserRoles},
	} {
		t.Run(test.name, func(t *testing.T) {
			subtest := target
			subtest.T = t
			test.run(subtest)
		})
	}
}

// installTarget is the API server of TestInstallation.
type installTarget struct {
	*testing.T
	client  *kubernetes.Clientset
	config  *rest.Config
	kubectl []string // the command, with its flags
	// kubeconfig is a file.
	kubeconfig string
	// user and groups are those whose permissions are reviewed: at first the agent's.
	user   string
	groups []string
}

func newInstallTarget(t *testing.T) installTarget {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{
		Components: append(cluster.APIOnly(), cluster.ControllerManager), // for the aggregation of roles
		Log:        t.Output(),
	})
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	binaries, err := cluster.FindBinaries(t.Context(), t.Output(), cluster.Kubectl)
	if err != nil {
		t.Fatalf("find kubectl: %v", err)
	}
	return installTarget{
		T:          t,
		client:     kubernetes.NewForConfigOrDie(c.Config()),
		config:     c.Config(),
		kubectl:    []string{binaries[cluster.Kubectl], "--kubeconfig", c.Kubeconfig(), "--cache-dir", t.TempDir()},
		kubeconfig: c.Kubeconfig(),
		user:       installUser,
		groups:     []string{"system:serviceaccounts", "system:serviceaccounts:" + installNamespace, "system:authenticated"},
	}
}

// run runs kubectl, expects success without warnings, and returns its output.
func (i installTarget) run(args ...string) string {
	i.Helper()
	args = append(slices.Clone(i.kubectl[1:]), args...)
	cmd := exec.CommandContext(i.Context(), i.kubectl[0], args...)
	cmd.Dir = filepath.Join("..", "..")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		i.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	if strings.Contains(stderr.String(), "Warning:") {
		i.Errorf("kubectl %s: the API server warns:\n%s", strings.Join(args, " "), &stderr)
	}
	return stdout.String()
}

// installCRD installs the CRD.
func (i installTarget) installCRD() {
	i.Helper()
	i.run("apply", "--server-side", "-k", "config/crd")
	i.run("wait", "--for=condition=Established", "--timeout=30s", "crd/"+installCRD)
}

// installationIsAccepted applies each folder of config/ in a dry run.
func installationIsAccepted(target installTarget) {
	target.Helper()
	// The other objects need these, even in a dry run.
	target.run("apply", "--server-side", "-f", "config/manager/namespace.yaml", "-f", "config/controlplane/namespace.yaml")
	target.installCRD()

	for _, config := range []string{
		"config/default", "config/threeport", "config/samples", "config/controlplane", "config/controlplane-postgres", "internal/e2e/testdata/agent-token",
		"internal/e2e/testdata/agent-components", "internal/e2e/testdata/controlplane-components", "internal/e2e/testdata/redaction-rules",
		"internal/e2e/testdata/no-admission-policy", "internal/e2e/testdata/name-prefix",
	} {
		objects := strings.Count("\n"+target.run("kustomize", config), "\nkind: ")
		applied := target.run("apply", "--server-side", "--dry-run=server", "-k", config)
		if got := strings.Count(applied, "serverside-applied (server dry run)"); got != objects || objects == 0 {
			target.Errorf("%s: %d of %d objects were accepted:\n%s", config, got, objects, applied)
		}
	}
}
