package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asPlugin makes the test binary be the plugin.
const asPlugin = "KUBECTL_THREEPORT_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
	}
	os.Exit(m.Run())
}

// plugin returns the plugin as a process of its own.
func plugin(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), asPlugin+"=1", "HOME="+home, "KUBECONFIG=", "KUBECACHEDIR="+filepath.Join(home, "cache"))
	return cmd
}

// exitCode returns that of a command that has ended.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

func TestExitCodes(t *testing.T) {
	const (
		healthy = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
		unknown = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}`
	)
	for _, tc := range []struct {
		reason, in string
		args       []string
		code       int
		out        string
	}{
		{"no command", "", nil, 0, "Available Commands:"},
		{"help of a command", "", []string{"track", "--help"}, 0, "Examples:"},
		{"version", "", []string{"version"}, 0, "kubectl-threeport "},
		{"all Healthy", healthy, []string{"assess", "-f", "-"}, 0, "Healthy      ConfigMap a"},
		{"one is not", healthy + "\n" + unknown, []string{"assess", "-f", "-"}, 1, "Unknown      Thing a: "},
		{"garbage", "a: [", []string{"assess", "-f", "-"}, 2, "standard input: document 1 (line 1)"},
		{"no such file", "", []string{"assess", "-f", "nowhere"}, 2, "nowhere"},
		{"no such command", "", []string{"asess"}, 2, `unknown command "asess": did you mean assess?`},
		{"no similar command", "", []string{"frobnicate"}, 2, `unknown command "frobnicate": see kubectl threeport --help`},
		{"no such flag", "", []string{"status", "--fast"}, 2, "unknown flag: --fast"},
		{"no cluster", "", []string{"status", "--server", "https://127.0.0.1:1"}, 3, "connection refused"},
		{"no cluster", "", []string{"doctor", "--server", "https://127.0.0.1:1"}, 3, "connection refused"},
		{"no kubeconfig", "", []string{"tree", "web", "--kubeconfig", "/nowhere"}, 3, "/nowhere"},
		{"completion", "", []string{"completion", "bash"}, 0, "__start_kubectl-threeport"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cmd := plugin(t.Context(), t, tc.args...)
			cmd.Stdin = strings.NewReader(tc.in)
			out, err := cmd.CombinedOutput()
			if code := exitCode(t, err); code != tc.code || !strings.Contains(string(out), tc.out) {
				t.Errorf("exit code %d, want %d; printed %s, want %q", code, tc.code, out, tc.out)
			}
			if strings.Contains(string(out), "\x1b") {
				t.Errorf("colours in an output that is no terminal: %q", out)
			}
		})
	}
}

func TestStatus_KubeconfigOfEnvironmentMissing_IsNamed(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"tree", "web"}, {"rbac"}, {"doctor"}} {
		cmd := plugin(t.Context(), t, args...)
		cmd.Env = append(cmd.Env, "KUBECONFIG=/nowhere/config")
		out, err := cmd.CombinedOutput()
		if code := exitCode(t, err); code != 3 || !strings.Contains(string(out), "$KUBECONFIG is /nowhere/config") {
			t.Errorf("%q: exit code %d, want 3; printed %s, want the file's name", args, code, out)
		}
	}
}

func TestAssess_ClosedPipe_IsNoError(t *testing.T) {
	var in strings.Builder
	for range 20_000 {
		in.WriteString(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}` + "\n")
	}
	cmd := plugin(t.Context(), t, "assess", "-f", "-")
	cmd.Stdin = strings.NewReader(in.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGPIPE {
			t.Errorf("ended with %v: %s", err, stderr.String())
		}
	}
	if stderr.Len() > 0 {
		t.Errorf("complained: %s", stderr.String())
	}
}

func TestAssess_InterruptDuringInput(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := plugin(ctx, t, "assess", "-f", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("a: [\n---\n")); err != nil { // the plugin reports the syntax error at once
		t.Fatal(err)
	}
	if _, err := stderr.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 2 {
		t.Errorf("exit code %d", code)
	}
}
