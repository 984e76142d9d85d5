package faults

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The replicas have different disks. The leader is killed, and the next one is stopped for longer than its lease.
func TestLeader_Takeover(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	first := w.startReplica("first")
	w.AwaitAgent(w.Ctx, first)
	second := w.startReplica("second")
	load := w.startLoad(seed(t), 10, w.deployWeb())
	from := func(name string) func(proxy.Request) bool {
		return func(r proxy.Request) bool { return r.From == name && r.IsAcceptedWrite() }
	}
	w.await(30, "of the first replica", from("first"))
	first.Kill()
	killed := time.Now()
	w.await(30, "of the second replica", from("second"))
	t.Logf("the second replica led %s after the first was killed", time.Since(killed).Round(time.Second))
	third := w.startReplica("third")

	// The second leader is stopped with all its requests open and a backlog.
	hold := make(chan struct{})
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if r.From == "second" {
			return proxy.Fault{Hold: hold}
		}
		return proxy.Fault{}
	})
	w.Pause(3 * time.Second)
	w.Must(second.Signal(syscall.SIGSTOP))
	w.Cleanup(func() { _ = second.Signal(syscall.SIGCONT) })
	second.MayFail = true // it loses the lease
	w.await(30, "of the third replica", from("third"))
	w.proxy.SetScript(nil)
	close(hold)
	all := func(r proxy.Request) bool { return r.From == "second" }
	before := w.proxy.Count(all)
	w.Must(second.Signal(syscall.SIGCONT))
	w.Eventually("the previous leader to end", func() error {
		select {
		case <-second.Done():
			return nil
		default:
			return errors.New("the process still runs")
		}
	})
	if after := w.proxy.Sent(all)[before:]; len(after) > 0 {
		t.Errorf("the former leader sent %d requests, the first %s %s", len(after), after[0].Method, after[0].Path)
	}
	load.stop()
	w.agent = third
	w.awaitAgreement()
}

// startReplica starts an agent with leader election, its own disk and its own address of the control plane.
func (w *faultWorld) startReplica(name string) *world.Agent {
	w.Helper()
	return w.launchWith(filepath.Join(w.TempDir(), name),
		"--kubeconfig="+w.Cluster.Kubeconfig(), "--threeport-api-server="+w.proxy.Listen(w.T, name),
		"--leader-elect", "--leader-election-namespace="+w.Namespace)
}
