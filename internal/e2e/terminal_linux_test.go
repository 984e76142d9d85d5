package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// runOnTerminal runs a command on a pseudoterminal with a number of columns, and returns its output. It waits for the end of the command.
func runOnTerminal(cmd *exec.Cmd, columns uint16) (string, error) {
	primary, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer primary.Close() //nolint:errcheck // the output is complete
	fd := int(primary.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return "", fmt.Errorf("unlock the pseudoterminal: %w", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		return "", fmt.Errorf("set the size of the pseudoterminal: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return "", fmt.Errorf("find the pseudoterminal: %w", err)
	}
	secondary, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	cmd.Stdout, cmd.Stderr = secondary, secondary
	err = cmd.Start()
	_ = secondary.Close() // the command has its own
	if err != nil {
		return "", err
	}
	out, _ := io.ReadAll(primary) // ends with EIO when the command has ended
	return string(out), cmd.Wait()
}
