package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	dirPrefix = "threeport-postgres-"
	// lockName is the file in a directory that its living owner has locked.
	lockName = "lock"
)

// newDir makes a directory that is ours while the lock is open, and removes those whose owners were killed.
func newDir() (dir string, lock *os.File, err error) {
	removeDead(os.TempDir())
	if dir, err = os.MkdirTemp("", dirPrefix); err != nil {
		return "", nil, fmt.Errorf("make directory of PostgreSQL: %w", err)
	}
	lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the directory just made
	if err == nil {
		err = flock(lock)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("lock directory of PostgreSQL: %w", err), os.RemoveAll(dir))
	}
	return dir, lock, nil
}

// removeDead removes the directories of servers that nobody has locked. One without a lock is just being made; one that
// cannot be removed is another user's.
func removeDead(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*", lockName)) // its only error is a bad pattern
	for _, path := range locks {
		lock, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // found by its name
		if err != nil {
			continue
		}
		if flock(lock) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}

// flock takes a lock that ends with us, unless another process has it.
func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
