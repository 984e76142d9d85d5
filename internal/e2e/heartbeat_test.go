package e2e

import (
	"syscall"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The agent hangs, and later dies. The plugin does not show its last words as the current status.
func TestHeartbeat_AgentStops_StatusIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.kubeconfig = w.Cluster.Kubeconfig()
	namespace := "--leader-election-namespace=" + w.Namespace
	w.startAgent(namespace)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.ExpectStatus(d, "Healthy")

	expect := func(code int, text string, flags ...string) {
		t.Helper()
		w.expectPlugin(code, text, append([]string{"status", d.Name}, flags...)...)
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
