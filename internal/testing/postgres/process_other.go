//go:build unix && !linux

package postgres

import (
	"errors"
	"os/exec"
	"syscall"
)

// killWithParent does nothing, since only Linux has the parent-death signal. If this process is killed, the server
// keeps running until it is stopped by hand (its command line has its directory).
func killWithParent(*exec.Cmd) {}

// children is not implemented. Child processes exit by themselves soon after the main process.
func children(int) []int { return nil }

func waitForExit([]int) {}

func hasExited(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
