// Package process runs the project's programs as processes for tests, the demo and measurements.
package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a running program. It records its output.
type Process struct {
	cmd    *exec.Cmd
	name   string
	done   chan struct{}
	err    error       // set before done is closed
	killed atomic.Bool // Kill found it running
	output *output
}

// Start runs a binary. It records standard output and standard error together, and copies them to the writers. On Linux the
// process ends with its parent.
func Start(binary string, env []string, args []string, copies ...io.Writer) (*Process, error) {
	p := &Process{
		cmd:    exec.Command(binary, args...), //nolint:gosec,noctx // the caller names the binary; Stop and Kill end it
		name:   filepath.Base(binary),
		done:   make(chan struct{}),
		output: newOutput(copies),
	}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// PID returns the ID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed after the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns the output so far.
func (p *Process) Output() string { return p.output.String() }

// Stop sends SIGTERM and waits for the end of the process; after the grace period it kills the process. It returns an error
// then, and the one of Err.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not stop within %s of SIGTERM\n%s", p.name, grace, p.output.tail())
	}
	return p.Err()
}

// Kill sends SIGKILL and waits for the end of the process.
func (p *Process) Kill() {
	select {
	case <-p.done:
	default:
		p.killed.Store(true)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Killed waits for the end of the process, and reports whether Kill caused it.
func (p *Process) Killed() bool {
	<-p.done
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return p.killed.Load() && ok && status.Signal() == syscall.SIGKILL
}

// Err waits for the end of the process. It returns an error for a non-zero exit code, or a signal that Kill did not send.
func (p *Process) Err() error {
	if p.Killed() || p.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", p.name, p.err, p.output.tail())
}

// Signal sends the process a signal, such as SIGSTOP.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// WaitFor waits for a line of output with a text, and returns the first one.
func (p *Process) WaitFor(ctx context.Context, text string) (string, error) {
	for {
		line, more := p.output.find(text)
		if line != "" {
			return line, nil
		}
		select {
		case <-more:
		case <-p.done:
			if line, _ := p.output.find(text); line != "" {
				return line, nil
			}
			return "", fmt.Errorf("%s ended without printing %q: %s\n%s", p.name, text, p.cmd.ProcessState, p.output.tail())
		case <-ctx.Done():
			return "", fmt.Errorf("wait for %s to print %q: %w\n%s", p.name, text, ctx.Err(), p.output.tail())
		}
	}
}

// URL waits until the process logs its listening address, and returns its URL.
func (p *Process) URL(ctx context.Context) (string, error) {
	const key = `"url":"`
	line, err := p.WaitFor(ctx, key)
	_, rest, _ := strings.Cut(line, key)
	url, _, _ := strings.Cut(rest, `"`)
	return url, err
}

// ResidentBytes returns the resident memory of a process (VmRSS; Linux).
func ResidentBytes(pid int) (int64, error) { return statusBytes(pid, "VmRSS:") }

// PeakResidentBytes returns the largest resident memory that a process ever had (VmHWM; Linux).
func PeakResidentBytes(pid int) (int64, error) { return statusBytes(pid, "VmHWM:") }

// PrivateBytes returns the resident memory without mapped files (RssAnon; Linux).
func PrivateBytes(pid int) (int64, error) { return statusBytes(pid, "RssAnon:") }

func statusBytes(pid int, field string) (int64, error) {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	defer status.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("read memory of process %d: no field %s", pid, field)
}

// output records the output of a process.
type output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	more   chan struct{} // closed and replaced after each write
	copies []io.Writer
}

func newOutput(copies []io.Writer) *output { return &output{more: make(chan struct{}), copies: copies} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	for _, w := range o.copies {
		_, _ = w.Write(b) // a failed copy is no error
	}
	close(o.more)
	o.more = make(chan struct{})
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) find(text string) (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.text.String()) {
		if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
			return strings.TrimSuffix(line, "\n"), o.more
		}
	}
	return "", o.more
}

// tail returns the end of the output, for an error.
func (o *output) tail() string {
	const shown = 4096
	text := o.String()
	return text[max(0, len(text)-shown):]
}
