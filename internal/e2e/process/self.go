package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// KillSelf starts another process of the running program with an environment variable, kills it a duration after its first
// line of standard output, and returns all complete lines. The process shares the standard error. It serves tests of state
// that survives a process.
func KillSelf(ctx context.Context, variable string, after time.Duration) ([]string, error) {
	cmd := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // the running program
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out := bufio.NewReader(pipe)
	first, err := out.ReadString('\n')
	<-time.After(after)
	if killErr := cmd.Process.Kill(); err != nil || killErr != nil {
		return nil, fmt.Errorf("the process printed %q: %w", first, errors.Join(err, killErr))
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		return nil, err
	}
	_ = cmd.Wait() // killed
	lines := strings.Split(first+string(rest), "\n")
	return lines[:len(lines)-1], nil // the last line is incomplete
}
