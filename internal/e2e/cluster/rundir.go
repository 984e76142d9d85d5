package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/threeport/threeport-agent/internal/e2e/cluster/cgroup"
)

// lockName is the file in a run directory that its running owner locks.
const lockName = "lock"

// runDir is the folder of one cluster: storage, keys, kubeconfigs, logs.
type runDir struct {
	path string
	lock *os.File
}

// cacheDir is the per-user folder of this package, outside of any work tree and private to the user.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	dir := filepath.Join(base, "threeport-agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	return dir, nil
}

// newRunDir makes a new directory under parent and removes those whose owners died. One lock serialises this, so
// that no process removes a directory that another one is making.
func newRunDir(ctx context.Context, parent string) (*runDir, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("create folder of run directories: %w", err)
	}
	guard, err := lock(ctx, filepath.Join(parent, ".lock"), func() {})
	if err != nil {
		return nil, err
	}
	defer func() { _ = guard.Close() }()
	if err := removeDead(parent); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, "run-")
	if err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	own, err := tryLock(filepath.Join(path, lockName), os.O_CREATE)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &runDir{path: path, lock: own}, nil
}

// removeDead removes the run directories whose lock is free. It creates no file in one that its owner removes at this moment.
func removeDead(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, "run-*"))
	if err != nil {
		return fmt.Errorf("list run directories: %w", err)
	}
	for _, dir := range dirs {
		held, err := tryLock(filepath.Join(dir, lockName), 0)
		switch {
		case errors.Is(err, errLocked):
			continue
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
		err = removeRunDir(dir)
		_ = held.Close() // nil without a lock file
		if err != nil {
			return fmt.Errorf("remove directory of a crashed run: %w", err)
		}
	}
	return nil
}

// removeRunDir removes a directory and the control groups of its node: a node whose first process was killed could
// not remove them itself.
func removeRunDir(dir string) error {
	var err error
	if runtime.GOOS == "linux" && os.Geteuid() == 0 { // only then there can be a node
		err = cgroup.Remove(nodeGroup(dir), stopGrace)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// cache is the folder of all run directories and binaries.
func (d *runDir) cache() string { return filepath.Dir(filepath.Dir(d.path)) }

// file is the path of a file in the directory.
func (d *runDir) file(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// remove deletes the directory and releases its lock.
func (d *runDir) remove() error {
	err := removeRunDir(d.path)
	return errors.Join(err, d.lock.Close())
}
