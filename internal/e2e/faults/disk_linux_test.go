package faults

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
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
			w.await(waitTimeout, 40, "before the disk is full", func(r request) bool { return r.isWrite() && r.accepted })
			if !fromTheStart {
				w.expectReady(waitTimeout, true)
				w.fill(filler)
			}
			w.expectSurvives(load, "no space left on device", func() { w.must(os.Remove(filler)) })
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
			w.await(waitTimeout, 40, "before the disk fails", func(r request) bool { return r.isWrite() && r.accepted })
			w.expectReady(waitTimeout, true)
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
func (w *world) expectSurvives(load *load, says string, restore func()) {
	w.Helper()
	before := w.proxy.count(request.isWrite)
	w.expectReady(waitTimeout, false)
	w.expectDurable(metav1.ConditionFalse, says, 1)
	w.await(waitTimeout, before+100, "while the disk takes nothing", request.isWrite)
	load.paused.Store(true)
	w.awaitAgreement(waitTimeout)
	load.paused.Store(false)

	restore()
	w.expectReady(waitTimeout, true)
	w.expectDurable(metav1.ConditionTrue, "survive a restart", 0)
	w.kill()
	w.start()
	load.stop()
	w.awaitAgreement(waitTimeout)
	if strings.Contains(w.agent.Output(), "was quarantined") {
		w.Error("the state on disk is incomplete after the disk was restored")
	}
}

// expectDurable waits until the condition Durable and the metric have the wanted values.
func (w *world) expectDurable(want metav1.ConditionStatus, says string, failing int) {
	w.Helper()
	w.eventually(waitTimeout, "condition Durable to be "+string(want), func() error {
		condition := meta.FindStatusCondition(w.status(w.deployed[0].Name).Status.Conditions, v1alpha1.ConditionDurable)
		if condition == nil || condition.Status != want || !strings.Contains(condition.Message, says) {
			return fmt.Errorf("it is %+v", condition)
		}
		return nil
	})
	page, _, err := fetch(w.ctx, w.metrics+"/metrics")
	if line := fmt.Sprintf("threeport_agent_state_failing %d\n", failing); err != nil || !strings.Contains(page, line) {
		w.Errorf("the metrics have no %q: %v", line, err)
	}
}

// mountState mounts a small disk for the state of the agent. It needs root.
func (w *world) mountState(size string) {
	w.Helper()
	w.must(os.MkdirAll(w.state, 0o700))
	if err := unix.Mount("tmpfs", w.state, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size="+size); err != nil {
		w.Fatalf("mount a small disk, which needs root: %v", err)
	}
	w.Cleanup(func() { w.must(unix.Unmount(w.state, unix.MNT_DETACH)) })
}

// fill writes a file until the disk is full.
func (w *world) fill(path string) {
	w.Helper()
	file, err := os.Create(path)
	w.must(err)
	defer file.Close() //nolint:errcheck // it is no use
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
func (w *world) expectReady(within time.Duration, want bool) {
	w.Helper()
	w.eventually(within, fmt.Sprintf("readiness to be %t", want), func() error {
		page, code, err := fetch(w.ctx, w.probes+"/readyz")
		if err == nil && (code == http.StatusOK) != want {
			err = fmt.Errorf("/readyz is %d: %s", code, page)
		}
		return err
	})
}
