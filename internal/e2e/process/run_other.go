//go:build unix && !linux

package process

import "syscall"

// run starts the process and waits for its end. The process survives a killed parent. It has its own process group: Ctrl-C
// in a terminal reaches only the parent, which stops the process.
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
