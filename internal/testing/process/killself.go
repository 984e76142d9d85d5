// Package process runs the test binary as another process, for tests of data that outlives a process.
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

// KillSelf starts the running test binary again with a variable in its environment, and kills it with SIGKILL after a delay. The
// delay begins with the first line that the process writes to standard output. KillSelf returns all lines that were written as
// a whole. Standard error is that of this process.
func KillSelf(ctx context.Context, variable string, after time.Duration) ([]string, error) {
	cmd := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this binary
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
	killErr := cmd.Process.Kill()
	rest, readErr := io.ReadAll(out)
	_ = cmd.Wait() // the error is that it was killed
	if err := errors.Join(err, killErr, readErr); err != nil {
		return nil, fmt.Errorf("the process wrote %q: %w", first, err)
	}
	lines := strings.Split(first+string(rest), "\n")
	return lines[:len(lines)-1], nil // the last line is not whole
}
