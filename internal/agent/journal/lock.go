package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse means that another process uses the directory.
var ErrInUse = errors.New("in use by another agent")

// lock excludes other processes from a directory. The system releases it when the process ends, however it ends.
type lock struct{ file *os.File }

// hold locks a directory, which it creates if need be. An error says what to do.
func hold(dir string) (*lock, error) {
	file, err := openLock(dir)
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
	return l.file.Close() // releases the lock
}

// hint says what to do about an error of hold.
func hint(err error) string {
	switch {
	case errors.Is(err, ErrInUse):
		return ": stop that agent, or give each agent its own directory"
	case errors.Is(err, syscall.ENOTDIR):
		return ": name a directory, or a path where one can be created"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ": free some space there"
	case errors.Is(err, syscall.EROFS):
		return ": mount a writable volume there, such as an emptyDir"
	case errors.Is(err, os.ErrPermission):
		return fmt.Sprintf(": let user %d or group %d write there; in a pod, set fsGroup in its securityContext to a group of the agent",
			os.Getuid(), os.Getgid())
	}
	return ": name a directory in which the agent can create files"
}

// openLock returns the locked lock file of a directory that the agent can write to. The disk may be full.
func openLock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// The directory may be writable for others: a link would lead to another file, and opening a FIFO may block.
	const flags = os.O_CREATE | os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), flags, 0o600) //nolint:gosec // the user names the directory
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

// takeLock locks a file, and writes the holder's name into it if the disk has space. The lock decides, not the name: the name
// may be that of a process that was killed.
func takeLock(file *os.File) error {
	err := flock(file)
	if errors.Is(err, ErrInUse) {
		holder, _ := io.ReadAll(io.LimitReader(file, 512)) // the holder may not have written its name
		if len(holder) == 0 {
			return err
		}
		return fmt.Errorf("%w, %s", err, holder)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	host, _ := os.Hostname()
	_ = file.Truncate(0)
	_, _ = fmt.Fprintf(file, "process %d on %s", os.Getpid(), host)
	return nil
}

// flock locks a file without waiting. The error is [ErrInUse] if another process has locked it.
func flock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// tryWriting creates a file and removes it: the lock file of an earlier agent may be writable where nothing else is. A
// disk that is full or fails is no error.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, "write-check-*")
	if err == nil {
		_, err = file.WriteString("x")
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	if failing(err) {
		return nil
	}
	return err
}
