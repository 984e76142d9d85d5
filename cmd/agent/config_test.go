package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"

	"github.com/threeport/threeport-agent/internal/configfile"
)

const configHeader = "apiVersion: agent.threeport.io/v1alpha1\nkind: AgentConfig\nsink: stdout\n"

func writeConfig(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(configHeader+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openTestConfig(t *testing.T, text string, args ...string) (*options, *liveConfig, error) {
	t.Helper()
	path := writeConfig(t, text)
	return openConfig(append(args, "--config="+path), path, prometheus.NewRegistry())
}

func TestOpenConfig_FlagsHavePrecedence(t *testing.T) {
	o, live, err := openTestConfig(t, "send-concurrency: 16\nwatch-namespaces: [shop, cart]\nzap-log-level: debug\n", "--send-concurrency=4", "--kubeconfig=x")
	if err != nil || live == nil {
		t.Fatal(err)
	}
	if o.notify.Concurrency != 4 || o.outbox.MaxSyncs != 3 || !slices.Equal(o.reporter.Namespaces, []string{"shop", "cart"}) {
		t.Errorf("got %+v", o)
	}
	if !live.level.Enabled(zapcore.DebugLevel) || !o.logging.Level.Enabled(zapcore.DebugLevel) {
		t.Error("the log has no level debug")
	}
}

func TestOpenConfig_MistakesHaveTheirLines(t *testing.T) {
	for text, want := range map[string]string{
		"send-concurrency: 1000":     "agent.yaml:4: delivery (--send-concurrency, --shutdown-timeout): send concurrency is 1000: give a number from 1 to 256",
		"send-concurency: 10":        `agent.yaml:4: there is no setting "send-concurency"`,
		"\nresync-interval: -1s":     "agent.yaml:5: --resync-interval: resync interval is -1s: give a duration above 0, such as 10m, or 0 for never",
		"pprof-bind-address: ':6'":   `agent.yaml:4: --pprof-bind-address is ":6": give a loopback address`,
		"kubeconfig: x":              `agent.yaml:4: there is no setting "kubeconfig"`,
		"zap-log-level: loud":        `agent.yaml:4: zap-log-level is "loud": invalid log level`,
		"metrics-cert-dir: /nowhere": "agent.yaml:4: --metrics-cert-dir: open /nowhere/tls.crt",
	} {
		if _, _, err := openTestConfig(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", text, err, want)
		}
	}
	for name, path := range map[string]string{"missing": "/nowhere/agent.yaml", "a folder": t.TempDir()} {
		if _, _, err := openConfig([]string{"--sink=stdout", "--config=" + path}, path, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v, want one that names %s", name, err, path)
		}
	}
}

func TestRestartRequired_NamesChangesThatAreNotReloaded(t *testing.T) {
	settings := func(values ...string) configfile.Settings {
		out := configfile.Settings{}
		for i := 0; i < len(values); i += 2 {
			out[values[i]] = configfile.Setting{Value: values[i+1], Line: i + 3}
		}
		return out
	}
	started := settings("cluster-name", "a", "resync-interval", "5m", "state-dir", "/x")
	now := settings("resync-interval", "1m", "state-dir", "/y", "send-concurrency", "9", "cluster-name", "a", "leader-elect", "true")
	if got := restartRequired(started, now); !slices.Equal(got, []string{"leader-elect", "state-dir"}) {
		t.Errorf("got %v", got)
	}
	if got := restartRequired(started, settings("cluster-name", "a")); !slices.Equal(got, []string{"state-dir"}) {
		t.Errorf("after a removal: %v", got)
	}
}

// docs/agent-config.yaml is the output of --print-config.
func TestPrintConfig_IsDocumented(t *testing.T) {
	var out, stderr strings.Builder
	if code := execute(t.Context(), flag.NewFlagSet("agent", flag.ContinueOnError), []string{"--print-config"}, &out, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	const document = "../../docs/agent-config.yaml"
	if *updateDocuments {
		if err := os.WriteFile(document, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	documented, err := os.ReadFile(document)
	if err != nil || string(documented) != out.String() {
		t.Errorf("%s differs from --print-config: run go test ./cmd/agent -update (%v)", document, err)
	}
}

var updateDocuments = flag.Bool("update", false, "write docs/agent-config.yaml")
