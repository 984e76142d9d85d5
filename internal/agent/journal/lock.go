package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse says that another process has the directory.
var ErrInUse = errors.New("in use by another agent")

// lock is a directory that is this process's until it is released, or the process ends, however it ends.
type lock struct{ file *os.File }

// hold takes a directory, which it creates if need be. An error says what to do.
func hold(dir string) (*lock, error) {
	file, err := lockState(dir)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, hint(err))
	}
	return &lock{file}, nil
}

func (l *lock) release() error {
	if l == nil {
		return nil
	}
	_ = l.file.Truncate(0)
	return l.file.Close() // gives the lock back
}

// hint is what to do about an error of lockState.
func hint(err error) string {
	switch {
	case errors.Is(err, ErrInUse):
		return ": end that one, or give each agent a folder of its own"
	case errors.Is(err, syscall.ENOTDIR):
		return ": name a folder, or a place where one can be created"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ": make room there"
	case errors.Is(err, syscall.EROFS):
		return ": mount a volume there that can be written to, such as an emptyDir"
	case errors.Is(err, os.ErrPermission):
		return fmt.Sprintf(": let user %d or group %d write there; in a pod, set fsGroup in its securityContext to a group of the agent's",
			os.Getuid(), os.Getgid())
	}
	return ": name a folder in which the agent can create files"
}

// lockState returns the locked file of a folder, which it creates if need be and may write to. The disk may be full.
func lockState(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the user names the folder
	if err != nil {
		return nil, err
	}
	err = takeLock(lock)
	if err == nil {
		err = tryWriting(dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// takeLock locks a file and writes into it whose it is, if the disk takes it. Without the lock, what is written there
// says nothing: it is of a process that was killed.
func takeLock(lock *os.File) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(lock, 512)) // the one who has it may not have written
		if len(holder) == 0 {
			return ErrInUse
		}
		return fmt.Errorf("%w, %s", ErrInUse, holder)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	host, _ := os.Hostname()
	_ = lock.Truncate(0)
	_, _ = fmt.Fprintf(lock, "process %d on %s", os.Getpid(), host)
	return nil
}

// tryWriting creates a file and removes it: a lock of an earlier agent may be writable where nothing else is. That the
// disk is full or fails is no error.
func tryWriting(dir string) error {
	file := filepath.Join(dir, "write-check")
	err := os.WriteFile(file, []byte("x"), 0o600)
	if removeErr := os.Remove(file); err == nil {
		err = removeErr
	}
	if failing(err) {
		return nil
	}
	return err
}
