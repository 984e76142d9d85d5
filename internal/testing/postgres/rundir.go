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
	// lockName is the file that the owner of a directory has locked while it runs.
	lockName = "lock"
)

// memory is the folder of files in memory on Linux. Creating a database makes some 300 files.
const memory = "/dev/shm"

// parentOf returns the folder for the directory of a server.
func parentOf(options Options) string {
	if info, err := os.Stat(memory); options.NoSync && err == nil && info.IsDir() {
		return memory
	}
	return os.TempDir()
}

// newDir creates a directory that is ours while the lock is open, and removes those of killed processes. One process at a time
// does so in a folder, because a new directory has no lock holder yet.
func newDir(parent string) (dir string, lock *os.File, err error) {
	folder, err := os.Open(parent) //nolint:gosec // one of two known folders
	if err == nil {
		defer folder.Close() //nolint:errcheck // only read; closing it unlocks it
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return "", nil, fmt.Errorf("lock folder of PostgreSQL's directories: %w", err)
	}
	removeStaleDirs(parent)
	if dir, err = os.MkdirTemp(parent, dirPrefix); err != nil {
		return "", nil, fmt.Errorf("create directory of PostgreSQL: %w", err)
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

// removeStaleDirs removes the directories without a lock holder, but not those of other users.
func removeStaleDirs(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*", lockName)) // the only error is a bad pattern
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

// flock locks a file until this process ends. It fails if another process holds the lock.
func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
