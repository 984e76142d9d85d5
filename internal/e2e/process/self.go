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

// KillSelf starts the program that runs once more, with a variable of the environment, kills it so long after the first line
// that it writes to standard output, and returns all lines that were whole. Its standard error is ours. It is for tests of what
// survives a process.
func KillSelf(ctx context.Context, variable string, after time.Duration) ([]string, error) {
	cmd := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // ourselves
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
		return nil, fmt.Errorf("the process said %q: %w", first, errors.Join(err, killErr))
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		return nil, err
	}
	_ = cmd.Wait() // it was killed
	lines := strings.Split(first+string(rest), "\n")
	return lines[:len(lines)-1], nil // the last is not whole
}
