package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// stopGrace is the time between SIGTERM and SIGKILL. It is short, because the data is deleted anyway.
const stopGrace = 3 * time.Second

// tailLines is the number of log lines in the error of a dead component.
const tailLines = 15

// process is one running component. Its goroutine, started by startProcess, is the only one that waits for it.
type process struct {
	component  Component
	logFile    string
	pid        int
	expected   atomic.Bool   // its end is wanted: Stop, Kill or Restart asked for it
	exited     chan struct{} // closed once the process is gone and waitErr is set
	waitErr    error
	parentPipe *os.File // the pipe that a process with its own namespaces reads until this process ends
}

// startSpec describes a process to start.
type startSpec struct {
	component     Component
	path          string // of the binary
	args          []string
	dir           string // working directory
	logFile       string
	ownNamespaces bool // it is the first process of new namespaces
	namespacesOf  int  // if not 0: the process whose namespaces it runs in
}

// startProcess starts a component, and appends its output to its log. The component ends with this process, see tieToParent, and
// not with ctx.
func startProcess(ctx context.Context, spec startSpec) (*process, error) {
	log, err := os.OpenFile(spec.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", spec.component, err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), spec.path, spec.args...) //nolint:gosec // binaries that FindBinaries built or was given
	cmd.Dir = spec.dir
	// The user's configuration (~/.kube, ~/.kwok, proxies) must not affect a component.
	cmd.Env = []string{"HOME=" + spec.dir, "TMPDIR=" + spec.dir, "PATH=" + searchPath()}
	cmd.Stdout, cmd.Stderr = log, log
	if spec.namespacesOf == 0 {
		tieToParent(cmd)
	} else { // the first process there ends it; Pdeathsig fires at once if the parent is in another PID namespace
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	p := &process{component: spec.component, logFile: spec.logFile, exited: make(chan struct{})}
	if spec.ownNamespaces {
		giveNamespaces(cmd)
		stdin, parentPipe, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", spec.component, err), log.Close())
		}
		defer stdin.Close() //nolint:errcheck // the child has its own
		cmd.Stdin, p.parentPipe = stdin, parentPipe
	}
	started := make(chan error, 1)
	// The kernel sends the parent-death signal when the *thread* that forked ends, so this goroutine keeps its
	// thread until the child is gone.
	go ownThread(func() {
		defer close(p.exited)
		defer func() { _ = log.Close() }()
		var err error
		if spec.namespacesOf != 0 {
			err = enter(spec.namespacesOf, allNamespaces)
		}
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.waitErr = cmd.Wait()
		}
		if p.parentPipe != nil {
			_ = p.parentPipe.Close()
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.component, err)
	}
	return p, nil
}

// alive reports whether the process has not been reaped yet.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop sends SIGTERM, and SIGKILL after grace (0: at once), and waits for the end of the process.
func (p *process) stop(grace time.Duration) {
	p.expected.Store(true)
	if grace > 0 {
		p.signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.exited:
			return
		case <-timer.C:
		}
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// signal ignores a process that is gone. Its pid cannot have been reused: only our own goroutine reaps it, and
// the race with that is the one between the check and the call.
func (p *process) signal(s syscall.Signal) {
	if p.alive() {
		_ = syscall.Kill(p.pid, s)
	}
}

// deathError returns the error of an unexpected end.
func (p *process) deathError() *deathError {
	state := "exit status 0"
	if p.waitErr != nil {
		state = p.waitErr.Error()
	}
	return &deathError{component: p.component, state: state, tail: tail(p.logFile, tailLines)}
}

// deathError is the unexpected end of a component.
type deathError struct {
	component Component
	state     string
	tail      string
}

func (e *deathError) Error() string {
	return fmt.Sprintf("%s died (%s); the end of its log:\n%s", e.component, e.state, e.tail)
}

// portTaken reports whether the component died because its port was in use.
func (e *deathError) portTaken() bool {
	return strings.Contains(e.tail, "address already in use")
}

// tail returns the last n lines of a file, or the error of reading them.
func tail(file string, n int) string {
	raw, err := os.ReadFile(file) //nolint:gosec // a log in our own run directory
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-n):], "\n\t")
}
