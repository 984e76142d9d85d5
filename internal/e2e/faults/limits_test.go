package faults

import (
	"context"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The limits of an agent; agentBuild has that of its memory.
const (
	maxState      = 300 << 20 // --state-max-bytes, and what the file's pages waste
	maxGoroutines = 300
	maxOpen       = 16 // requests to the control plane at a time: --send-concurrency, and others that time out
)

// limits measures the agent during a test.
type limits struct {
	mu         sync.Mutex
	agent      *world.Agent
	state      string
	private    int64 // bytes of memory that the kernel cannot take back
	resident   int64 // and with pages of files
	bytes      int64
	goroutines int
}

// watchLimits measures twice a second until the test ends, and then compares the maxima with the limits. A world whose agent is not
// followed has none.
func watchLimits(w *faultWorld) *limits {
	l := &limits{}
	ctx, cancel := context.WithCancel(w.Ctx)
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.measure(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	w.Cleanup(func() {
		cancel()
		done.Wait()
		if l.agent == nil {
			return
		}
		perSecond, open := w.proxy.Busiest()
		w.Logf("the agent used at most %d MiB of memory, %d with pages of files, %d KiB of state, %d goroutines, %d requests a second, %d at a time",
			l.private>>20, l.resident>>20, l.bytes>>10, l.goroutines, perSecond, open)
		if l.private == 0 || l.resident == 0 || l.goroutines == 0 {
			w.Error("a limit of the agent was not measured once")
		}
		if l.private > shared.agent.maxMemory || l.bytes > maxState || l.goroutines > maxGoroutines || open > maxOpen {
			w.Errorf("the agent exceeded a limit: %d MiB of memory, %d KiB of state, %d goroutines, %d requests at a time",
				shared.agent.maxMemory>>20, maxState>>10, maxGoroutines, maxOpen)
		}
	})
	return l
}

// follow continues with another process.
func (l *limits) follow(agent *world.Agent, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agent, l.state = agent, state
}

// measure skips values that are not available, as while the process starts or ends.
func (l *limits) measure(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.agent == nil {
		return
	}
	if n, err := process.PrivateBytes(l.agent.PID()); err == nil {
		l.private = max(l.private, n)
	}
	if n, err := process.ResidentBytes(l.agent.PID()); err == nil {
		l.resident = max(l.resident, n)
	}
	l.bytes = max(l.bytes, sizeOf(l.state))
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if n, err := l.agent.Metric(ctx, "go_goroutines"); err == nil {
		l.goroutines = max(l.goroutines, int(n))
	}
}

// sizeOf returns the total size of the files below a folder.
func sizeOf(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a file that was removed meanwhile has no size
		}
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
