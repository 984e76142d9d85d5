package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/documents"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// documentedHost is the name of the control-plane API in the documents.
const documentedHost = "threeport.example.org"

// block is a block of shell commands in a document.
type block struct{ document, text string }

// documentBlocks returns the blocks of all documents.
func documentBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, commands := range documents.ShellBlocks(string(text)) {
			blocks = append(blocks, block{name, commands})
		}
	}
	return blocks
}

// documentedCommands are the blocks that runBlocks runs, in this order, by a text of each. Replacements are pairs.
var documentedCommands = []struct {
	document, has string
	replacements  []string
}{
	{"docs/access.md", "workload assign --cluster", nil},
	{"docs/access.md", "keyout tls.key", nil},
	{"docs/access.md", "controlplane token revoke", []string{"<ID>", `$(controlplane token list | awk '/ jane /{print $1; exit}')`}},
	{"docs/backup.md", "/controlplane backup", nil},
	{"docs/event-filters.md", "events=drop", []string{"annotate deployment", "annotate -n $NAMESPACE deployment"}},
	{"docs/kubectl-threeport.md", "kubectl threeport version", nil},
	{"docs/kubectl-threeport.md", "kubectl_complete-threeport", nil},
	{"docs/kubectl-threeport.md", "until kubectl threeport status web", []string{"status web", "status NAME"}},
	{"docs/monitoring.md", "create clusterrolebinding", nil},
	{"docs/monitoring.md", "--duration=8760h", nil},
	{"docs/monitoring.md", "--name prometheus", nil},
	{"docs/permissions.md", "threeport-workloads-escalate", nil},
	{"docs/runbook.md", "kubectl threeport doctor", nil},
	{"docs/runbook.md", "select(.silent)", nil},
	{"docs/runbook.md", "port-forward", nil},
	{"docs/runbook.md", "base64 -d | openssl x509", nil},
	{"docs/runbook.md", "--dry-run=client", nil},
	{"docs/runbook.md", "openssl s_client", nil},
	{"docs/runbook.md", "retry-rejected", nil},
	{"docs/runbook.md", "get events -A", nil},
	{"docs/runbook.md", "--fresh", nil},
	{"docs/runbook.md", "finalizers", nil},
	{"docs/runbook.md", "Request (failed|was slow)", nil},
	{"docs/single-sign-on.md", "create secret generic", nil},
	{"docs/threeportworkload.md", "retry-rejected", nil},
	{"docs/threeportworkload.md", "report-again", nil},
	{"docs/troubleshooting.md", "kubectl threeport status NAME", nil},
	{"README.md", "kubectl threeport rbac", nil},
}

// otherCommands are the blocks that other tests run, or that need what a test does not have, by a text of each.
var otherCommands = []struct{ document, has, reason string }{
	{"README.md", "make demo    #", "TestDemo_Once and make test"},
	{"README.md", "image-pull", "TestDemo_Hints"},
	{"README.md", "make cluster NODE=real", "this suite, and TestDemo_Once"},
	{"README.md", "make deploy CONFIG", "the suite's installation, by package operator"},
	{"README.md", "helm install threeport-agent", "TestOperator_Chart_LosesNothing, by other arguments"},
	{"README.md", "bin/controlplane", "the end-to-end suites start it with more flags"},
	{"docs/SECURITY.md", "cosign verify", "needs a released image"},
	{"docs/backup.md", "name: restore", "needs an image with a shell; TestControlPlane_BackupRestored restores a file"},
	{"docs/control-plane.md", "bin/controlplane", "the end-to-end suites start it with more flags"},
	{"docs/helm.md", "bin/threeport-agent-VERSION.tgz", "TestCharts_Package and TestOperator_Chart_LosesNothing, by other arguments"},
	{"docs/helm.md", "--set-file healthRules", "TestCharts_Install and TestOperator_Chart_LosesNothing, by other arguments"},
	{"docs/helm.md", "--take-ownership", "TestOperator_Chart_LosesNothing"},
	{"docs/measurements.md", "make measure", "takes too long"},
	{"docs/migrate.md", "openAPIV3Schema", "TestMigration_Guide"},
	{"docs/migrate.md", "--replicas=0\nkubectl -n threeport-control-plane wait", "TestMigration_Guide"},
	{"docs/migrate.md", "agent-ca agent-cert", "TestMigration_Guide"},
	{"docs/migrate.md", "-k config/threeport", "TestMigration_Guide"},
	{"docs/migrate.md", "helm upgrade --install", "TestMigration_Guide"},
	{"docs/migrate.md", "rollout status", "TestDoctor_FindsWhatIsWrong"},
	{"docs/migrate.md", "delete --ignore-not-found", "TestMigration_Guide"},
	{"docs/migrate.md", "--replicas=1", "TestMigration_Guide"},
	{"docs/migrate.md", "part-of-", "TestMigration_Guide"},
	{"docs/monitoring.md", "controlplane --otlp-logs-endpoint", "package otlp starts the API with more flags"},
	{"docs/monitoring.md", "agent --otlp-traces-endpoint", "package otlp starts both programs with more flags"},
	{"docs/runbook.md", "Export of logs", "needs a collector"},
	{"docs/operating.md", "openssl req -x509", "TestControlPlane_InCluster"},
	{"docs/operating.md", "token create --role admin --name first", "TestControlPlane_InCluster"},
	{"docs/operating.md", "config/controlplane-postgres", "needs PostgreSQL in a cluster"},
	{"docs/operating.md", "cluster add", "would replace the agent of this suite; TestClusterCommand_Add_ScriptInstallsWithToken runs the script"},
	{"docs/operating.md", "secret generic threeport-agent-ca", "package operator creates these Secrets"},
	{"docs/operating.md", "docker load", "needs Docker and a registry; TestBundle reads the images"},
	{"docs/runbook.md", "pods,podmonitors", "needs the operator of Prometheus; TestComponents_Build"},
	{"docs/runbook.md", "kubectl auth can-i", "needs the component agent-token; TestCredentials_TokenRenewsItself"},
	{"docs/runbook.md", "--previous", "needs an agent that has restarted"},
	{"docs/single-sign-on.md", "--oidc-issuer", "the tests of single sign-on start it with a provider"},
	{"docs/threeportworkload.md", "create deployment mine", "needs the demo; TestTrack"},
	{"docs/troubleshooting.md", "go tool pprof", "needs an agent with --pprof-bind-address"},
}

// Each block of shell commands is run, or has a reason.
func TestDocuments_EachBlockIsRunOrHasReason(t *testing.T) {
	var known []block
	for _, c := range documentedCommands {
		known = append(known, block{c.document, c.has})
	}
	for _, c := range otherCommands {
		known = append(known, block{c.document, c.has})
	}
	used := make([]int, len(known))
	for _, b := range documentBlocks(t) {
		found := 0
		for i, k := range known {
			if k.document == b.document && strings.Contains(b.text, k.text) {
				found++
				used[i]++
			}
		}
		if found != 1 {
			first, _, _ := strings.Cut(b.text, "\n")
			t.Errorf("%s: the block that begins with %q is listed %d times in docs_test.go, want once", b.document, first, found)
		}
	}
	for i, n := range used {
		if n != 1 {
			t.Errorf("%s: %d blocks have %q, want one", known[i].document, n, known[i].text)
		}
	}
}

// documented runs commands of the documents in a folder of the test.
type documented struct {
	*operatorWorld
	dir    string
	path   string // of programs
	values []string
	blocks []block
}

func newDocumented(w *operatorWorld) *documented {
	w.Helper()
	d := &documented{operatorWorld: w, dir: w.TempDir(), blocks: documentBlocks(w.T)}
	binaries, err := cluster.FindBinaries(w.Ctx, nil, cluster.Kubectl)
	w.Must(err)
	plugin, err := process.Build(w.Ctx, root, "./cmd/kubectl-threeport", filepath.Join(d.dir, "bin"))
	w.Must(err)
	d.path = filepath.Dir(binaries[cluster.Kubectl]) + ":" + filepath.Dir(plugin)
	config, err := filepath.Abs(filepath.Join(root, "config"))
	w.Must(err)
	w.Must(os.Symlink(config, filepath.Join(d.dir, "config")))
	return d
}

// write writes a file that commands read.
func (d *documented) write(name, text string) {
	d.Helper()
	d.Must(os.MkdirAll(filepath.Dir(filepath.Join(d.dir, name)), 0o700))
	d.Must(os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

// reachBy makes the commands reach the control-plane API at an address by its name in the documents. A port that is not open yet is
// tried again, as a reader would.
func (d *documented) reachBy(address string) {
	d.Helper()
	d.write(".curlrc", fmt.Sprintf("connect-to = %q\nretry = 60\nretry-delay = 1\nretry-connrefused\n", documentedHost+":443:"+address))
	d.values = []string{"HOST:443", address, "HOST", documentedHost}
}

// prelude makes commands of the documents work in a test: make runs in the root, and controlplane in its container. grep succeeds without
// a match. Processes in the background end with the block.
const prelude = `set -eu
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
make() { command make -C "$ROOT" "$@"; }
controlplane() { kubectl -n threeport-control-plane exec deployment/threeport-controlplane -- /controlplane "$@"; }
grep() { command grep "$@" || [ $? -eq 1 ]; }
`

// runBlock runs the block of a document that has a text, and returns its output. Replacements are pairs.
func (d *documented) runBlock(document, has string, replacements ...string) string {
	d.Helper()
	for _, b := range d.blocks {
		if b.document != document || !strings.Contains(b.text, has) {
			continue
		}
		text := strings.NewReplacer(d.values...).Replace(strings.NewReplacer(replacements...).Replace(b.text))
		absolute, err := filepath.Abs(root)
		d.Must(err)
		cmd := exec.CommandContext(d.Ctx, "bash", "-c", prelude+text)
		cmd.Dir = d.dir
		cmd.Env = append(os.Environ(), "PATH="+d.path+":"+os.Getenv("PATH"), "KUBECONFIG="+shared.cluster.Kubeconfig(), "CURL_HOME="+d.dir, "ROOT="+absolute, "NAMESPACE="+d.Namespace)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		begin := time.Now()
		out, err := cmd.Output()
		d.Logf("%s: %q took %s", document, has, time.Since(begin).Round(100*time.Millisecond))
		if err != nil {
			d.Errorf("%s: %v\n%s\nthe output: %.2000s\n%.2000s", document, err, text, out, stderr.String())
		}
		return string(out)
	}
	d.Fatalf("%s has no block with %q", document, has)
	return ""
}

// runBlocks runs the documented commands. The control-plane API has an instance with an ID.
func (d *documented) runBlocks(instance string) {
	d.Helper()
	deployed := d.deploy("documented", web)
	d.ExpectStatus(deployed, "Healthy")
	d.kubectl("create", "namespace", "monitoring")
	d.kubectl("create", "serviceaccount", "prometheus", "-n", "monitoring")
	d.Cleanup(func() {
		for _, object := range []string{"clusterrolebinding/threeport-agent-metrics-reader", "clusterrolebinding/threeport-upstream", "namespace/monitoring"} {
			_, err := shared.operator.Kubectl(context.WithoutCancel(d.Ctx), "delete", object, "--wait=false")
			d.Must(err)
		}
	})
	d.write("secret", "a client secret")
	d.write("manifests/conf.yaml", world.ConfigMap("conf"))
	uid := d.kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
	_, port, err := net.SplitHostPort(d.FreeAddress())
	d.Must(err)
	d.values = append(d.values,
		"FILE|-", "manifests", "877123456789012345", instance, "0c6a9a4e-9d5c-4d0a-8f0e-2f6c7f1f0b11", uid, "<cluster UID>", uid,
		"deployment/threeport-agent 8080", "deployment/threeport-agent "+port+":8080", "127.0.0.1:8080", "127.0.0.1:"+port,
		" NAME", " "+deployed.Name, "USER", "jane",
	)
	for _, c := range documentedCommands {
		d.runBlock(c.document, c.has, c.replacements...)
	}
}
