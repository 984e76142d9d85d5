package process

import (
	"syscall"
	"testing"
	"time"
)

func TestProcess_KillByOther_IsError(t *testing.T) {
	for _, c := range []struct {
		reason string
		end    func(*Process)
		killed bool
	}{
		{reason: "Kill", end: (*Process).Kill, killed: true},
		{reason: "another process", end: func(p *Process) {
			if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			<-p.Done()
			p.Kill()
		}},
	} {
		p, err := Start("/bin/sh", nil, []string{"-c", "echo 'signal: killed'; exec sleep 600"})
		if err != nil {
			t.Fatal(err)
		}
		c.end(p)
		if err := p.Stop(time.Minute); p.Killed() != c.killed || (err == nil) != c.killed {
			t.Errorf("killed by %s: Killed returns %t, and Stop the error %v", c.reason, p.Killed(), err)
		}
	}
}
