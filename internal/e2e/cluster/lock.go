package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 100 * time.Millisecond

// errLocked says that somebody else holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock takes the exclusive lock of a file, which it creates, or returns errLocked. Closing the file gives the
// lock back, and so does the end of this process, however it ends: children do not inherit it.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // paths in our own cache folder
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// lock waits for the exclusive lock of a file. It calls waiting, once, if somebody else has it.
func lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for first := true; ; first = false {
		file, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return file, err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}
