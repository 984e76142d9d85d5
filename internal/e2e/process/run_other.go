//go:build !linux

package process

// run starts the process and waits for its end. It outlives a parent that is killed.
func (p *Process) run(started chan<- error) {
	defer close(p.done)
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
}
