package process

import (
	"runtime"
	"syscall"
)

// run starts the process and waits for its end. The kernel kills the process when the thread that started it ends, so run
// keeps the thread. The process has its own process group: Ctrl-C in a terminal reaches only the parent, which stops the
// process.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
}
