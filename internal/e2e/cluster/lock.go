package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is the interval of attempts to take a lock.
const lockPoll = 100 * time.Millisecond

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock opens a file with an additional flag, such as os.O_CREATE, and takes its exclusive lock, or returns errLocked. Closing the
// file or the end of this process releases the lock; children do not inherit it.
func tryLock(path string, flag int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flag, 0o600) //nolint:gosec // paths in our own cache folder
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

// lock waits for the exclusive lock of a file. It calls waiting once if another process holds the lock.
func lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for first := true; ; first = false {
		file, err := tryLock(path, os.O_CREATE)
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
