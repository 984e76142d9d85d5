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

// The disk is full: the agent goes on in memory, says so, and writes again when there is room.
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
			w.await(patience, 40, "before the disk is full", func(r request) bool { return r.write() && r.accepted })
			if !fromTheStart {
				w.expectReady(patience, true)
				w.fill(filler)
			}
			w.outlive(load, "no space left on device", func() { w.must(os.Remove(filler)) })
		})
	}
}

// The disk fails, or the system makes it read-only because it does: the same.
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
			w.await(patience, 40, "before the disk fails", func(r request) bool { return r.write() && r.accepted })
			w.expectReady(patience, true)
			if c.atStart {
				w.kill()
			}
			disk.fail(c.fault)
			if c.atStart {
				w.start()
			}
			w.outlive(load, c.fault.Error(), func() { disk.fail(0) })
		})
	}
}

// outlive expects that the agent goes on while its disk does not take anything, says why, and has all on disk again once
// that is mended.
func (w *world) outlive(load *load, says string, mend func()) {
	w.Helper()
	before := w.proxy.count(request.write)
	w.expectReady(patience, false)
	w.expectDurable(metav1.ConditionFalse, says, 1)
	w.await(patience, before+100, "while the disk takes nothing", request.write)
	load.paused.Store(true)
	w.agree(patience)
	load.paused.Store(false)

	mend()
	w.expectReady(patience, true)
	w.expectDurable(metav1.ConditionTrue, "outlives", 0)
	w.kill()
	w.start()
	load.stop()
	w.agree(patience)
	if strings.Contains(w.agent.Output(), "was quarantined") {
		w.Error("the state on disk was not whole once the disk was mended")
	}
}

// expectDurable waits until the workload's status and the metric tell whether the state can be written.
func (w *world) expectDurable(want metav1.ConditionStatus, says string, failing int) {
	w.Helper()
	w.eventually(patience, "condition Durable to be "+string(want), func() error {
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

// mountState gives the agent a disk of its own, of a few megabytes. It needs root.
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

// expectReady waits until the agent's readiness is as wanted.
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
