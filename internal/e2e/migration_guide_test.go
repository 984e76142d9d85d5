package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/documents"
	"github.com/threeport/threeport-agent/internal/e2e/helm"
)

// TestMigration_Guide runs the commands of docs/migrate.md on one API server, for each way to install the agent.
func TestMigration_Guide(t *testing.T) {
	t.Parallel()
	charts := newChartTest(t) // builds the tools before the API server starts
	target := newInstallTarget(t)
	target.run("create", "namespace", threeportNamespace)
	for _, test := range []struct {
		name     string
		install  int // the script of the step that installs the agent
		manifest string
	}{
		{name: "Kustomize", install: 0, manifest: "kubectl kustomize config/threeport"},
		{name: "Helm", install: 1, manifest: "helm get manifest threeport-agent --namespace " + installNamespace},
	} {
		t.Run(test.name, func(t *testing.T) {
			subtest := target
			subtest.T = t
			guide := newGuideTest(subtest, charts)
			guide.manifest = test.manifest
			guide.installThreeportsAgent()
			guide.migrate(test.install)
			guide.goBack()
			guide.migrate(test.install)
			guide.removeThreeportsAgent()
			guide.removeAgent()
		})
	}
}

// threeportNamespace is the namespace of Threeport's own agent.
const threeportNamespace = "threeport-control-plane"

// Sections of the document with commands.
const (
	guideVersion = "Before you begin"
	guideStop    = "1. Stop Threeport's agent"
	guideSecrets = "2. Copy the Secrets"
	guideInstall = "3. Install this agent"
	guideCheck   = "4. Check" // needs an agent that runs, see TestDoctor_FindsWhatIsWrong
	guideRemove  = "5. Remove Threeport's agent"
	guideBack    = "Going back"
)

// guideTest runs the commands of the document.
type guideTest struct {
	installTarget
	blocks map[string][]string // the scripts of each section
	env    []string
	// manifest prints the installed objects of this agent.
	manifest string
}

func newGuideTest(target installTarget, charts chartTest) guideTest {
	target.Helper()
	g := guideTest{installTarget: target, blocks: guideBlocks(target)}
	want := map[string]int{
		guideVersion: 1, guideStop: 1, guideSecrets: 1, guideInstall: 2, guideCheck: 1, guideRemove: 1, guideBack: 2,
	}
	got := map[string]int{}
	for section, blocks := range g.blocks {
		got[section] = len(blocks)
	}
	if !maps.Equal(got, want) {
		g.Fatalf("docs/migrate.md has these scripts per section: %v, want %v", got, want)
	}
	tools, home := g.TempDir(), g.TempDir()
	for name, path := range map[string]string{"kubectl": g.kubectl[0], "helm": charts.helm4, "kubectl-threeport": shared.plugin} {
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			g.Fatal(err)
		}
	}
	g.env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+g.kubeconfig, "HOME="+home)
	g.env = append(g.env, helm.Environment(home)...)
	return g
}

// guideBlocks returns the scripts of the document by section.
func guideBlocks(target installTarget) map[string][]string {
	target.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "migrate.md"))
	if err != nil {
		target.Fatal(err)
	}
	blocks := map[string][]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		heading, body, _ := strings.Cut(section, "\n")
		if commands := documents.ShellBlocks(body); len(commands) > 0 {
			blocks[heading] = commands
		}
	}
	return blocks
}

// script runs a script of the document in the checkout, and returns its output.
func (g guideTest) script(section string, block int) string {
	g.Helper()
	return g.shell(g.blocks[section][block])
}

func (g guideTest) shell(script string) string {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = root, g.env
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "Warning:") {
		g.Fatalf("%s%v\n%s", script, err, out)
	}
	return string(out)
}

// objects writes the objects of this agent to a file, and returns its path.
func (g guideTest) objects() string {
	g.Helper()
	path := filepath.Join(g.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(g.shell(g.manifest+"\n")), 0o600); err != nil {
		g.Fatal(err)
	}
	return path
}

// installThreeportsAgent creates the objects of Threeport's own agent as its installer does, and a ThreeportWorkload with its finalizer.
func (g guideTest) installThreeportsAgent() {
	g.Helper()
	const manager = "--field-manager=tptctl"
	if g.run("get", "crd", installCRD, "-o", "name", "--ignore-not-found") == "" {
		g.run("create", manager, "-f", "internal/e2e/testdata/threeport/crd.yaml")
	} else {
		g.run("replace", manager, "-f", "internal/e2e/testdata/threeport/crd.yaml")
	}
	g.run("wait", "--for=condition=Established", "--timeout=30s", "crd/"+installCRD)
	g.run("create", manager, "-f", "internal/e2e/testdata/threeport/agent.yaml")
	// The values have the characters of Base64.
	g.run("-n", threeportNamespace, "create", "secret", "generic", "agent-ca", "--from-literal=tls.crt=authority>>>???")
	g.run("-n", threeportNamespace, "create", "secret", "generic", "agent-cert", "--from-literal=tls.crt=certificate~", "--from-literal=tls.key=key")
	g.run("apply", "--server-side", "-f", "config/samples/workload.yaml")
	g.run("patch", "threeportworkloads", "--type=merge", `--patch={"metadata":{"finalizers":["`+threeportsFinalizer+`"]}}`, g.workload("name"))
	g.expectConflict("config/crd/bases")
	if got, want := g.script(guideVersion, 0), `["WorkloadInstance","HelmWorkloadInstance"]`; got != want {
		g.Errorf("the command prints the types %s, want %s", got, want)
	}
}

// expectConflict expects that kubectl applies the objects of a folder only with --force-conflicts.
func (g guideTest) expectConflict(folder string) {
	g.Helper()
	args := append(slices.Clone(g.kubectl[1:]), "apply", "--server-side", "--dry-run=server", "-f", folder)
	cmd := exec.CommandContext(g.Context(), g.kubectl[0], args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "with \"tptctl\"") {
		g.Errorf("kubectl apply without --force-conflicts: %v: %s\nwant a conflict with the installer", err, out)
	}
}

// workload returns a field of the metadata of the only ThreeportWorkload.
func (g guideTest) workload(field string) string {
	g.Helper()
	return g.run("get", "threeportworkloads", "-o", "jsonpath={.items[*].metadata."+field+"}")
}

// migrate runs the steps that replace Threeport's agent.
func (g guideTest) migrate(install int) {
	g.Helper()
	before := g.workload("uid")
	g.script(guideStop, 0)
	g.expectReplicas(threeportNamespace, "0")
	g.script(guideSecrets, 0)
	for _, name := range []string{"agent-ca", "agent-cert"} {
		data := []string{"get", "secret", "-o", "jsonpath={.data}"}
		want := g.run(append(data, "-n", threeportNamespace, name)...)
		if got := g.run(append(data, "-n", installNamespace, "threeport-"+name)...); got != want {
			g.Errorf("the Secret threeport-%s has %s, want the data of %s: %s", name, got, name, want)
		}
	}
	g.script(guideInstall, install)
	g.expectReplicas(installNamespace, "1")
	g.run("get", "-f", g.objects(), "-o", "name")
	if got := g.run("get", "crd", installCRD, "-o", "jsonpath={.spec.names.shortNames}"); got != `["tpw"]` {
		g.Errorf("the CRD has the short names %s after the installation", got)
	}
	if after := g.workload("uid"); after != before || before == "" {
		g.Errorf("the UID of the ThreeportWorkload was %q and is %q", before, after)
	}
	// No agent runs here, so doctor finds errors. None of them is about the stopped Deployment of Threeport's agent.
	if doctor := g.shell("kubectl threeport doctor || true\n"); !strings.Contains(doctor, "Deployment "+installNamespace+"/threeport-agent") ||
		strings.Contains(doctor, threeportNamespace) {
		g.Errorf("doctor does not check this agent only:\n%s", doctor)
	}
}

func (g guideTest) expectReplicas(namespace, want string) {
	g.Helper()
	if got := g.run("-n", namespace, "get", "deployment", "threeport-agent", "-o", "jsonpath={.spec.replicas}"); got != want {
		g.Errorf("the Deployment in %s has %s replicas, want %s", namespace, got, want)
	}
}

func (g guideTest) goBack() {
	g.Helper()
	g.script(guideBack, 0)
	g.expectReplicas(installNamespace, "0")
	g.expectReplicas(threeportNamespace, "1")
}

// sharedRole is the ClusterRole that both agents have.
const sharedRole = "clusterrole.rbac.authorization.k8s.io/threeport-agent-metrics-reader"

// removeThreeportsAgent expects that the last step removes the objects of Threeport's agent and nothing else, also not its Secrets.
func (g guideTest) removeThreeportsAgent() {
	g.Helper()
	g.script(guideRemove, 0)
	left := strings.Fields(g.run("get", "-f", "internal/e2e/testdata/threeport/agent.yaml", "--ignore-not-found", "-o", "name"))
	if !slices.Equal(left, []string{sharedRole}) {
		g.Errorf("after the removal of Threeport's agent, its objects %v exist, want only %s", left, sharedRole)
	}
	if secrets := g.run("-n", threeportNamespace, "get", "secrets", "-o", "name"); secrets != "secret/agent-ca\nsecret/agent-cert\n" {
		g.Errorf("after the removal of Threeport's agent, these Secrets exist: %s, want agent-ca and agent-cert", secrets)
	}
	g.run("get", "-f", g.objects(), "-o", "name")
}

// removeAgent expects that the removal of this agent keeps the CRD, the ThreeportWorkload and what Threeport's agent needs.
func (g guideTest) removeAgent() {
	g.Helper()
	before, objects := g.workload("uid"), g.objects()
	g.script(guideBack, 1)
	left := strings.Fields(g.run("get", "-f", objects, "--ignore-not-found", "-o", "name"))
	slices.Sort(left)
	if want := []string{sharedRole, "customresourcedefinition.apiextensions.k8s.io/" + installCRD}; !slices.Equal(left, want) {
		g.Errorf("after the removal of the agent, these objects exist: %v, want only %v", left, want)
	}
	if after := g.workload("uid"); after != before || before == "" {
		g.Errorf("the UID of the ThreeportWorkload was %q and is %q", before, after)
	}
	if finalizers := g.workload("finalizers"); finalizers != `["`+threeportsFinalizer+`"]` {
		g.Errorf("the ThreeportWorkload has the finalizers %s", finalizers)
	}
	g.run("delete", sharedRole)
	g.run("-n", threeportNamespace, "delete", "secret", "agent-ca", "agent-cert")
}
