package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
)

// TestCharts_Install applies the charts to one API server: each rendered object in a dry run, then releases with each version of Helm.
func TestCharts_Install(t *testing.T) {
	t.Parallel()
	newChartTest(t) // builds the tools before the API server starts
	target := newInstallTarget(t)
	target.run("create", "namespace", "elsewhere")
	target.run("apply", "--server-side", "-f", "config/manager/namespace.yaml", "-f", "config/controlplane/namespace.yaml")

	for _, test := range []struct {
		name string
		run  func(chartInstallTest)
	}{
		{name: "AreAccepted", run: chartsAreAccepted},
		{name: "Helm4_UpgradeUninstall", run: func(c chartInstallTest) { c.upgradeAndUninstall(c.charts.helm4, c.charts.helm4) }},
		{name: "Helm3_UpgradeUninstall", run: func(c chartInstallTest) { c.upgradeAndUninstall(c.charts.helm3, c.charts.helm3) }},
		{name: "Helm3To4_UpgradeUninstall", run: func(c chartInstallTest) { c.upgradeAndUninstall(c.charts.helm3, c.charts.helm4) }},
		{name: "KeepsVolume", run: chartKeepsVolume},
		{name: "AdoptsKustomization", run: chartAdoptsKustomization},
	} {
		t.Run(test.name, func(t *testing.T) {
			subtest := target
			subtest.T = t
			test.run(chartInstallTest{installTarget: subtest, charts: newChartTest(t)})
		})
	}
}

// chartInstallTest installs charts on an API server.
type chartInstallTest struct {
	installTarget
	charts chartTest
}

// helm runs Helm with the API server, and expects success.
func (c chartInstallTest) helm(helm, namespace string, args ...string) string {
	c.Helper()
	return c.charts.run(helm, append(args, "--namespace", namespace, "--kubeconfig", c.kubeconfig)...)
}

// chartsAreAccepted applies the objects of each case in a dry run.
func chartsAreAccepted(c chartInstallTest) {
	c.Helper()
	c.installCRD() // The other objects need it, even in a dry run.
	c.installMonitoringCRDs()
	for _, test := range chartCases() {
		rendered := c.charts.rendered(c.charts.helm4, test)
		path := filepath.Join(c.TempDir(), "rendered.yaml")
		c.charts.write(path, rendered)
		applied := c.run("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", path)
		objects := len(c.charts.parse(rendered))
		if got := strings.Count(applied, "serverside-applied (server dry run)"); got != objects {
			c.Errorf("%s: %d of %d objects were accepted:\n%s", test.name, got, objects, applied)
		}
	}
	c.run("delete", "crd", installCRD)
}

// installMonitoringCRDs defines the kinds of the Prometheus Operator, without their schemas.
func (c chartInstallTest) installMonitoringCRDs() {
	c.Helper()
	path := filepath.Join(c.TempDir(), "monitoring.yaml")
	c.charts.write(path, strings.Join(monitoring.OperatorKinds(), "---"))
	c.run("apply", "--server-side", "-f", path)
	c.run("wait", "--for=condition=Established", "--timeout=2m", "-f", path)
}

// upgradeAndUninstall installs an older chart of the agent, upgrades it to the present one, uninstalls it and installs it again. The
// ThreeportWorkload has to survive all of that.
func (c chartInstallTest) upgradeAndUninstall(first, second string) {
	c.Helper()
	c.helm(first, installNamespace, "install", agentChart.name, c.olderChart(), "--set", "extraArgs={--cluster-name=one}")
	c.run("wait", "--for=condition=Established", "--timeout=30s", "crd/"+installCRD)
	c.expect("v0.0.1 of the chart has no short name", "", "get", "crd", installCRD, "-o", "jsonpath={.spec.names.shortNames}")
	c.run("apply", "--server-side", "-f", "config/samples/workload.yaml")
	workload := []string{"get", "threeportworkloads", "-o", "jsonpath={.items[*].metadata.uid}"}
	uid := c.run(workload...)
	if uid == "" {
		c.Fatal("there is no ThreeportWorkload")
	}

	c.helm(second, installNamespace, "upgrade", agentChart.name, agentChart.path(), "--reset-then-reuse-values", "--set", "replicas=2")
	c.expect("the upgrade changes the CRD", `["tpw"]`, "get", "crd", installCRD, "-o", "jsonpath={.spec.names.shortNames}")
	c.expect("the upgrade sets the replicas", "2", "-n", installNamespace, "get", "deployment", agentChart.name, "-o", "jsonpath={.spec.replicas}")
	args := c.run("-n", installNamespace, "get", "deployment", agentChart.name, "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	if !strings.Contains(args, `"--cluster-name=one"`) {
		c.Errorf("the upgrade loses the flag of the release: %s", args)
	}
	c.expect("the upgrade keeps the ThreeportWorkload", uid, workload...)

	c.helm(second, installNamespace, "uninstall", agentChart.name)
	for _, kind := range []string{"deployments", "serviceaccounts/" + agentChart.name, "clusterroles/threeport-agent", "validatingadmissionpolicies"} {
		c.expect("the release removes "+kind, "", "-n", installNamespace, "get", kind, "-o", "name", "--ignore-not-found")
	}
	c.expect("the CRD and the ThreeportWorkload survive the release", uid, workload...)

	c.helm(second, installNamespace, "install", agentChart.name, agentChart.path())
	c.expect("another installation keeps the ThreeportWorkload", uid, workload...)
	c.helm(second, installNamespace, "uninstall", agentChart.name)
	c.run("delete", "crd", installCRD)
}

// olderChart packages a chart with a CRD without its short name.
func (c chartInstallTest) olderChart() string {
	c.Helper()
	folder := c.TempDir()
	source := filepath.Join(folder, agentChart.name)
	if err := os.CopyFS(source, os.DirFS(filepath.Join("..", "..", agentChart.path()))); err != nil {
		c.Fatalf("copy the chart: %v", err)
	}
	path := filepath.Join(source, "files", "install.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		c.Fatalf("read the objects of the chart: %v", err)
	}
	older := strings.Replace(string(raw), "    shortNames:\n    - tpw\n", "", 1)
	if older == string(raw) {
		c.Fatal("the CRD has no short name to remove")
	}
	c.charts.write(path, older)
	c.charts.run(c.charts.helm4, "package", source, "--version", "0.0.1", "--app-version", "v0.0.1", "--destination", folder)
	return filepath.Join(folder, agentChart.name+"-0.0.1.tgz")
}

// chartKeepsVolume expects that the database survives a change to PostgreSQL and an uninstallation.
func chartKeepsVolume(c chartInstallTest) {
	c.Helper()
	namespace := controlPlaneChart.namespace
	c.helm(c.charts.helm4, namespace, "install", controlPlaneChart.name, controlPlaneChart.path())
	volume := []string{"-n", namespace, "get", "persistentvolumeclaims", "-o", "jsonpath={.items[*].metadata.uid}"}
	uid := c.run(volume...)
	if uid == "" {
		c.Fatal("there is no PersistentVolumeClaim")
	}
	c.helm(c.charts.helm4, namespace, "upgrade", controlPlaneChart.name, controlPlaneChart.path(), "--set", "database=postgres")
	c.expect("PostgreSQL has two replicas", "2", "-n", namespace, "get", "deployment", controlPlaneChart.name, "-o", "jsonpath={.spec.replicas}")
	c.expect("the change to PostgreSQL keeps the volume", uid, volume...)
	c.helm(c.charts.helm4, namespace, "upgrade", controlPlaneChart.name, controlPlaneChart.path())
	c.expect("the change back to SQLite uses the same volume", uid, volume...)
	c.helm(c.charts.helm4, namespace, "uninstall", controlPlaneChart.name)
	c.expect("the volume survives the release", uid, volume...)
}

// chartAdoptsKustomization installs the chart over the objects that kubectl applied, as docs/helm.md describes it.
func chartAdoptsKustomization(c chartInstallTest) {
	c.Helper()
	c.run("apply", "--server-side", "-k", agentChart.base)
	c.run("apply", "--server-side", "-f", "config/samples/workload.yaml")
	workload := []string{"get", "threeportworkloads", "-o", "jsonpath={.items[*].metadata.uid}"}
	uid := c.run(workload...)
	c.helm(c.charts.helm4, installNamespace, "install", agentChart.name, agentChart.path(), "--take-ownership", "--force-conflicts")
	c.expect("the release has the Deployment", "Helm", "-n", installNamespace, "get", "deployment", agentChart.name,
		"-o", `jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}`)
	c.expect("the release keeps the ThreeportWorkload", uid, workload...)

	upgrade := []string{"upgrade", agentChart.name, agentChart.path(), "--set", "extraArgs={--cluster-name=two}"}
	if _, err := c.charts.try(c.charts.helm4, append(upgrade, "--namespace", installNamespace, "--kubeconfig", c.kubeconfig)...); err == nil {
		c.Error("an upgrade of the taken objects without --force-conflicts succeeds: drop the advice in docs/helm.md")
	}
	c.helm(c.charts.helm4, installNamespace, append(upgrade, "--force-conflicts")...)
	args := c.run("-n", installNamespace, "get", "deployment", agentChart.name, "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	if !strings.Contains(args, `"--cluster-name=two"`) {
		c.Errorf("the upgrade of the taken objects does not set the flag: %s", args)
	}
}

// expect runs kubectl and compares its output.
func (c chartInstallTest) expect(reason, want string, args ...string) {
	c.Helper()
	if got := c.run(args...); got != want {
		c.Errorf("%s: kubectl %s prints %q, want %q", reason, strings.Join(args, " "), got, want)
	}
}
