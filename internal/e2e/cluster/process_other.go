//go:build unix && !linux

package cluster

import (
	"os/exec"
	"syscall"
)

// tieToParent gives the child a process group of its own: Ctrl-C in a terminal is for us, who end the components
// in order. Only Linux can tie a child's life to its parent's: here the children of a killed process stay until
// they are ended by hand (their command lines name the run directory).
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
