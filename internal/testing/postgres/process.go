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

// process is the program, which starts more of its own. The goroutine of startProcess is the only one that waits for it.
type process struct {
	logFile string
	pid     int
	exited  chan struct{} // closed once it is gone, and waitErr is set
	waitErr error
}

// errPortTaken is that another process was quicker to listen on the port.
var errPortTaken = errors.New("the port is taken")

// command is a program that is run as the user of the server. Nothing of our own environment may change what it does.
func command(ctx context.Context, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the programs of PostgreSQL
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for us
	runAsServer(cmd)
	return cmd
}

// startProcess starts the program, with its output appended to its log. It outlives ctx, and ends with us.
func startProcess(ctx context.Context, dir, logFile, path string, args ...string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return nil, fmt.Errorf("open log of PostgreSQL: %w", err)
	}
	cmd := command(context.WithoutCancel(ctx), dir, path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	tieToParent(cmd)
	p := &process{logFile: logFile, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that forked ends, so this goroutine keeps its thread
		// until the child is gone.
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

// stop ends the program, first as is usual (a "fast shutdown"), then at once, then by force, and waits until it is gone.
func (p *process) stop() {
	for _, step := range []struct {
		signal syscall.Signal
		grace  time.Duration
	}{{syscall.SIGINT, 15 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}} {
		if p.ended(step.signal, step.grace) {
			return
		}
	}
	p.kill()
}

// ended sends a signal, and tells whether the program was gone within grace.
func (p *process) ended(signal syscall.Signal, grace time.Duration) bool {
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

// kill ends the program and all that it started, none of which can do anything any more when it returns.
func (p *process) kill() {
	p.signal(syscall.SIGSTOP) // so that it starts no others meanwhile
	all := children(p.pid)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
	awaitEnd(all)
}

// signalAll sends a signal to the program and all that it started.
func (p *process) signalAll(signal syscall.Signal) {
	for _, pid := range children(p.pid) {
		_ = syscall.Kill(pid, signal)
	}
	p.signal(signal)
}

// signal ignores a program that is gone. Its pid cannot have been reused: only our own goroutine reaps it, and the race
// with that is the one between the check and the call.
func (p *process) signal(signal syscall.Signal) {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(p.pid, signal)
	}
}

// deathError describes an end that nobody asked for.
func (p *process) deathError() error {
	end := tail(p.logFile)
	err := fmt.Errorf("PostgreSQL died (%w); the end of its log:\n%s", p.waitErr, end)
	if strings.Contains(end, "Address already in use") {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// tail returns the last lines of a file, or why they cannot be read.
func tail(file string) string {
	raw, err := os.ReadFile(file) //nolint:gosec // a log in our own directory
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-15):], "\n\t")
}
