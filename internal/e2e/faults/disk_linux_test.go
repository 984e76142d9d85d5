package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The disk is full. The agent keeps its state in memory, shows that in the status, and writes again when there is space.
func TestStateDir_DiskFull(t *testing.T) {
	t.Parallel()
	for name, fromTheStart := range map[string]bool{"while the agent runs": false, "when it starts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWithoutAgent(t)
			w.mountState("2m")
			filler := filepath.Join(w.state, "filler")
			if fromTheStart {
				w.fill(filler)
			}
			w.start()
			load := w.startLoad(seed(t), 20, w.deployWeb())
			w.await(40, "before the disk is full", proxy.Request.IsAcceptedWrite)
			if !fromTheStart {
				w.expectReady(true)
				w.fill(filler)
			}
			w.expectSurvives(load, "no space left on device", func() { w.Must(os.Remove(filler)) })
		})
	}
}

// The disk fails, or the kernel remounts it read-only. The agent behaves as with a full disk.
func TestStateDir_DiskFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   syscall.Errno
		atStart bool
	}{
		"while the agent runs": {fault: syscall.EIO},
		"when it starts":       {fault: syscall.EIO, atStart: true},
		"and so is read-only":  {fault: syscall.EROFS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWithoutAgent(t)
			disk := w.mountFailing()
			w.start()
			load := w.startLoad(seed(t), 20, w.deployWeb())
			w.await(40, "before the disk fails", proxy.Request.IsAcceptedWrite)
			w.expectReady(true)
			if c.atStart {
				w.kill()
			}
			disk.fail(c.fault)
			if c.atStart {
				w.start()
			}
			w.expectSurvives(load, c.fault.Error(), func() { disk.fail(0) })
		})
	}
}

// expectSurvives expects that the agent works without its disk and shows the reason, and that its state is complete on disk
// after the disk is restored.
func (w *faultWorld) expectSurvives(load *load, message string, restore func()) {
	w.Helper()
	before := w.proxy.Count(proxy.Request.IsWrite)
	w.expectReady(false)
	w.expectDurable(metav1.ConditionFalse, message, 1)
	w.await(before+100, "while the disk fails", proxy.Request.IsWrite)
	load.paused.Store(true)
	w.awaitAgreement()
	load.paused.Store(false)

	restore()
	w.expectReady(true)
	w.expectDurable(metav1.ConditionTrue, "survive a restart", 0)
	w.kill()
	w.start()
	load.stop()
	w.awaitAgreement()
	if strings.Contains(w.agent.Output(), "was quarantined") {
		w.Error("the state on disk is incomplete after the disk was restored")
	}
}

// expectDurable waits until the condition Durable and the metric have the wanted values.
func (w *faultWorld) expectDurable(want metav1.ConditionStatus, message string, failing float64) {
	w.Helper()
	w.ExpectCondition(w.deployed[0], v1alpha1.ConditionDurable, want, message)
	const metric = "threeport_agent_state_failing"
	if got, err := w.agent.Metric(w.Ctx, metric); err != nil || got != failing {
		w.Errorf("%s is %v (%v), want %v", metric, got, err, failing)
	}
}

// mountState mounts a small disk for the state of the agent. It needs root.
func (w *faultWorld) mountState(size string) {
	w.Helper()
	w.Must(os.MkdirAll(w.state, 0o700))
	if err := unix.Mount("tmpfs", w.state, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size="+size); err != nil {
		w.Fatalf("mount a small disk, which needs root: %v", err)
	}
	w.Cleanup(func() { w.Must(unix.Unmount(w.state, unix.MNT_DETACH)) })
}

// fill writes a file until the disk is full.
func (w *faultWorld) fill(path string) {
	w.Helper()
	file, err := os.Create(path)
	w.Must(err)
	defer file.Close() //nolint:errcheck // the file only occupies space
	for n := 4096; ; {
		_, err := file.Write(make([]byte, n))
		switch {
		case err == nil:
		case !errors.Is(err, syscall.ENOSPC):
			w.Fatal(err)
		case n == 1:
			return
		default:
			n = 1
		}
	}
}

// expectReady waits until the readiness of the agent has the wanted value.
func (w *faultWorld) expectReady(want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("readiness of the agent to be %t", want), func() error {
		err := w.agent.Ready(w.Ctx)
		switch {
		case want:
			return err
		case err == nil:
			return errors.New("the agent is ready")
		case errors.Is(err, world.ErrNotReady):
			return nil
		}
		return err
	})
}
