//go:build unix && !linux

package cluster

import (
	"os/exec"
	"syscall"
)

// tieToParent gives the child its own process group, so that Ctrl-C in a terminal reaches only this process, which ends
// the components in order. Only Linux can end a child with its parent. Here the user ends the children of a killed
// process by hand; their command lines name the run directory.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
