//go:build unix && !linux

package process

import "syscall"

// run starts the process and waits for its end. It outlives a parent that is killed. The process has a group
// of its own: Ctrl-C in a terminal is for its parent, who ends it in order.
func (p *Process) run(started chan<- error) {
	defer close(p.done)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
}
