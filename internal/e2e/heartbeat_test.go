package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The agent hangs, and later dies. The plugin does not show its last words as the current status.
func TestHeartbeat_AgentStops_StatusIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	plugin, err := process.Build(w.Ctx, root, "./cmd/kubectl-threeport", t.TempDir())
	w.Must(err)
	w.kubeconfig = w.Cluster.Kubeconfig()
	namespace := "--leader-election-namespace=" + w.Namespace
	w.startAgent(namespace)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.ExpectStatus(d, "Healthy")

	home := t.TempDir()
	expect := func(code int, text string, flags ...string) {
		t.Helper()
		w.Eventually(fmt.Sprintf("kubectl threeport status %v to exit with %d and print %q", flags, code, text), func() error {
			args := append([]string{"status", d.Name, "--kubeconfig", w.kubeconfig, "--cache-dir", filepath.Join(home, "cache")}, flags...)
			out, err := exec.CommandContext(w.Ctx, plugin, args...).CombinedOutput()
			exit, _ := errors.AsType[*exec.ExitError](err)
			got := 0
			if exit != nil {
				got = exit.ExitCode()
			} else if err != nil {
				return err
			}
			if got != code || !strings.Contains(string(out), text) {
				return fmt.Errorf("it exits with %d and prints %s", got, out)
			}
			return nil
		})
	}
	expect(0, "Healthy")
	w.Must(syscall.Kill(w.agent.PID(), syscall.SIGSTOP))
	expect(4, "agent not reporting since")
	expect(0, "Healthy", "--fresh")
	w.Must(syscall.Kill(w.agent.PID(), syscall.SIGCONT))
	expect(0, "Healthy")
	w.Must(w.agent.Stop(world.Timeout)) // it releases the Lease
	expect(4, "last status: Healthy")
	w.startAgent(namespace)
	expect(0, "Healthy")
	w.patch(d.Objects[0], `{"data":{"key":"changed"}}`)
	w.AwaitAgreement(world.Expected(d)...) // the agent has synced, so that it can stop
}
