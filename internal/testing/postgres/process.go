package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is the PostgreSQL main process, which starts child processes. Only the goroutine of startProcess waits for
// it.
type process struct {
	logFile string
	pid     int
	exited  chan struct{} // closed after it has exited and waitErr is set
	waitErr error
}

// errPortTaken reports that another process took the port first.
var errPortTaken = errors.New("the port is taken")

// command returns a command that runs as the server's user, with a fixed environment.
func command(ctx context.Context, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the programs of PostgreSQL
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // keeps Ctrl-C in a terminal from reaching it
	runAsServer(cmd)
	return cmd
}

// startProcess starts the program and appends its output to logFile. The process outlives ctx, and ends with this one.
func startProcess(ctx context.Context, dir, logFile, path string, args ...string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return nil, fmt.Errorf("open log of PostgreSQL: %w", err)
	}
	cmd := command(context.WithoutCancel(ctx), dir, path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	killWithParent(cmd)
	p := &process{logFile: logFile, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that forked ends. So this goroutine keeps its
		// thread until the child has exited.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		defer func() { _ = log.Close() }()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.waitErr = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return p, nil
}

// stop stops the process by a fast shutdown, then an immediate one, then SIGKILL, and waits until it has exited.
func (p *process) stop() {
	for _, step := range []struct {
		signal syscall.Signal
		grace  time.Duration
	}{{syscall.SIGINT, 15 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}} {
		if p.stopsAfter(step.signal, step.grace) {
			return
		}
	}
	p.kill()
}

// stopsAfter sends a signal, and reports whether the process exited within grace.
func (p *process) stopsAfter(signal syscall.Signal, grace time.Duration) bool {
	p.signal(signal)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// kill kills the process and its children with SIGKILL, and waits until all have exited.
func (p *process) kill() {
	p.signal(syscall.SIGSTOP) // so that it starts no further children
	all := children(p.pid)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
	waitForExit(all)
}

// signalAll sends a signal to the process and then to its children, so that a stopped process starts no further ones.
func (p *process) signalAll(signal syscall.Signal) {
	p.signal(signal)
	for _, pid := range children(p.pid) {
		_ = syscall.Kill(pid, signal)
	}
}

// signal does nothing if the process has exited. Its PID cannot have been reused before: only the goroutine of
// startProcess reaps it. A race remains between the check and the call.
func (p *process) signal(signal syscall.Signal) {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(p.pid, signal)
	}
}

// exitError describes an unexpected exit.
func (p *process) exitError() error {
	end := tail(p.logFile)
	err := fmt.Errorf("PostgreSQL exited (%w); the end of its log:\n%s", p.waitErr, end)
	if strings.Contains(end, "Address already in use") {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// tail returns the last lines of a file, or the error of reading it.
func tail(file string) string {
	raw, err := os.ReadFile(file) //nolint:gosec // a log in our own directory
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-15):], "\n\t")
}
