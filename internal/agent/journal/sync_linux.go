package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncData waits until the disk has a file's bytes. Unlike [os.File.Sync] it does not wait for the time of the last change,
// which saves a fifth of the CPU time of a commit.
func syncData(file *os.File) error {
	for {
		err := syscall.Fdatasync(int(file.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
