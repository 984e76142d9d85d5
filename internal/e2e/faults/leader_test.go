package faults

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// The replicas have different disks. The leader is killed, and the next one is stopped for longer than its lease.
func TestLeader_Takeover(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	first := w.startReplica("first")
	_, err := first.WaitFor(w.ctx, "Starting workers")
	w.must(err)
	second := w.startReplica("second")
	load := w.startLoad(seed(t), 10, w.deployWeb())
	from := func(name string) func(request) bool {
		return func(r request) bool { return r.from == name && r.isWrite() && r.accepted }
	}
	w.await(waitTimeout, 30, "of the first replica", from("first"))
	first.Kill()
	killed := time.Now()
	w.await(waitTimeout, 30, "of the second replica", from("second"))
	t.Logf("the second replica led %s after the first was killed", time.Since(killed).Round(time.Second))
	third := w.startReplica("third")

	// The second leader is stopped with all its requests open and a backlog.
	hold := make(chan struct{})
	w.proxy.setScript(func(r request) fault {
		if r.from == "second" {
			return fault{hold: hold}
		}
		return fault{}
	})
	w.pause(3 * time.Second)
	w.must(second.Signal(syscall.SIGSTOP))
	w.Cleanup(func() { _ = second.Signal(syscall.SIGCONT) })
	w.deposed = second
	w.await(waitTimeout, 30, "of the third replica", from("third"))
	w.proxy.setScript(nil)
	close(hold)
	all := func(r request) bool { return r.from == "second" }
	before := w.proxy.count(all)
	w.must(second.Signal(syscall.SIGCONT))
	w.eventually(waitTimeout, "the previous leader to end", func() error {
		select {
		case <-second.Done():
			return nil
		default:
			return fmt.Errorf("it runs")
		}
	})
	if after := w.proxy.sent(all)[before:]; len(after) > 0 {
		t.Errorf("the former leader sent %d requests, the first %s %s", len(after), after[0].method, after[0].path)
	}
	load.stop()
	w.agent = third
	w.awaitAgreement(waitTimeout)
}

// startReplica starts an agent with leader election, its own disk and its own address of the control plane.
func (w *world) startReplica(name string) *process.Process {
	w.Helper()
	metrics := freeAddress(w.T)
	state := filepath.Join(w.TempDir(), name)
	agent := w.startProcess(append([]string{
		"--kubeconfig=" + w.cluster.Kubeconfig(), "--threeport-api-server=" + w.proxy.listen(w.T, name), "--auth-enabled=false",
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + freeAddress(w.T), "--state-dir=" + state,
		"--leader-elect", "--leader-election-namespace=" + w.namespace,
	}, w.way.agent...)...)
	w.limits.follow(agent, "http://"+metrics, state)
	return agent
}
