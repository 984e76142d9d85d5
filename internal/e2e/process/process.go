// Package process runs the project's own programs as processes of their own, for tests, the demo and
// measurements: they are looked at from outside.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Build compiles one of the project's commands, such as "./cmd/agent", into a folder, given by its absolute
// path, and returns the binary. The flags are those of go build, such as "-race".
func Build(ctx context.Context, root, command, dir string, flags ...string) (string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	out := filepath.Join(dir, filepath.Base(command))
	args := append([]string{"build", "-o", out, "-buildvcs=false"}, likeMake(flags)...)
	cmd := exec.CommandContext(ctx, "go", append(args, command)...) //nolint:gosec // the project's own commands
	cmd.Dir = root
	// A build that is interrupted early leaves its work folder behind: let it be where the binary is.
	cmd.Env = append(os.Environ(), "GOTMPDIR="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, text)
	}
	return out, nil
}

// likeMake adds what the Makefile compiles with as well: what one of both has compiled, the other finds.
func likeMake(flags []string) []string {
	if slices.Contains(flags, "-race") {
		return append(flags, "-gcflags=modernc.org/...=-d=checkptr=0")
	}
	return append(flags, "-trimpath")
}

// Process is a program that runs. Its output is kept, and can be waited for.
type Process struct {
	cmd    *exec.Cmd
	name   string
	done   chan struct{}
	err    error // set before done is closed
	output *output
}

// Start runs a binary. Standard output and standard error are kept together, and copied to the writers.
// The process dies with its parent, where the operating system provides for that.
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

// PID returns the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns what the process has printed so far.
func (p *Process) Output() string { return p.output.String() }

// Stop asks the process to end (SIGTERM) and waits until it has; after the grace it is killed. The error is
// that of an exit code other than 0.
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
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", p.name, p.err, p.output.tail())
	}
	return nil
}

// Kill ends the process at once (SIGKILL), and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Signal sends the process a signal, such as SIGSTOP.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// WaitFor returns the first line of the output that contains a text, once it is printed.
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
			return "", fmt.Errorf("%s ended without printing %q: %w\n%s", p.name, text, errors.Join(p.err), p.output.tail())
		case <-ctx.Done():
			return "", fmt.Errorf("wait for %s to print %q: %w\n%s", p.name, text, ctx.Err(), p.output.tail())
		}
	}
}

// URL returns where the process says in its log that it listens, once it does.
func (p *Process) URL(ctx context.Context) (string, error) {
	const key = `"url":"`
	line, err := p.WaitFor(ctx, key)
	_, rest, _ := strings.Cut(line, key)
	url, _, _ := strings.Cut(rest, `"`)
	return url, err
}

// ResidentBytes returns the memory that a process occupies (VmRSS; Linux).
func ResidentBytes(pid int) (int64, error) { return statusBytes(pid, "VmRSS:") }

// PrivateBytes returns the part of it that is not of files, which the kernel could read again (RssAnon; Linux).
func PrivateBytes(pid int) (int64, error) { return statusBytes(pid, "RssAnon:") }

func statusBytes(pid int, field string) (int64, error) {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	defer status.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("read memory of process %d: it has no %s", pid, field)
}

// output keeps what a process prints.
type output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	more   chan struct{} // closed and replaced when there is more
	copies []io.Writer
}

func newOutput(copies []io.Writer) *output { return &output{more: make(chan struct{}), copies: copies} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	for _, w := range o.copies {
		_, _ = w.Write(b) // a lost copy loses nothing
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
