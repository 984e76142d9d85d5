//go:build unix && !linux

package postgres

import (
	"errors"
	"os/exec"
	"syscall"
)

// tieToParent does nothing: only Linux can tie a child's life to its parent's. Here a server stays if we are killed,
// until it is ended by hand (its command line names its directory).
func tieToParent(*exec.Cmd) {}

// children are not known here. They end by themselves, soon after the program that started them.
func children(int) []int { return nil }

func awaitEnd([]int) {}

func ended(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
