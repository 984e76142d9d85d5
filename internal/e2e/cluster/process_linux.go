package cluster

import (
	"os/exec"
	"syscall"
)

// tieToParent makes the kernel kill the child when the thread that starts it dies, so also when this process is
// killed. The child gets a process group of its own: Ctrl-C in a terminal is for us, who end the components in
// order.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
