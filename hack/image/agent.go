package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// What the Dockerfile's last stage copies from the stage before.
const (
	builtAgent  = "/out/agent"
	authorities = "/etc/ssl/certs/ca-certificates.crt" // where Debian has them, and so the image of Go
)

// Agent writes the image of the agent whose source tree is at root; see [Archive]. Files, user and entrypoint come
// from the Dockerfile, the binary from `make build`, which Docker runs too. It is built into a folder of its own, so
// bin/agent stays what it is. The certificate authorities are those of this machine.
func Agent(ctx context.Context, root, tarPath, ref string) error {
	dir, err := os.MkdirTemp("", "agent-image-")
	if err != nil {
		return fmt.Errorf("create folder for the agent: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing is left there that matters
	spec, err := FromDockerfile(filepath.Join(root, "Dockerfile"), func(stagePath string) (string, error) {
		return onThisMachine(stagePath, dir)
	})
	if err != nil {
		return err
	}
	if err := makeBuild(ctx, root, dir); err != nil {
		return err
	}
	return Archive(tarPath, ref, spec)
}

// onThisMachine returns the file that stands for one of the Dockerfile's build stage.
func onThisMachine(stagePath, dir string) (string, error) {
	switch stagePath {
	case builtAgent:
		return filepath.Join(dir, "agent"), nil
	case authorities:
		if _, err := os.Stat(authorities); err != nil {
			return "", fmt.Errorf("find the certificate authorities: %w: install the package ca-certificates", err)
		}
		return authorities, nil
	}
	return "", fmt.Errorf("package hack/image knows where %s and %s are on this machine, and nothing else of the build stage",
		builtAgent, authorities)
}

// makeBuild runs `make build` of the agent into a folder.
func makeBuild(ctx context.Context, root, dir string) error {
	cmd := exec.CommandContext(ctx, "make", "build", "WHAT=./cmd/agent", "BIN="+dir) //nolint:gosec // our own folder
	cmd.Dir = root
	// We may have been started by make ourselves, whose flags are not for this one; its variables are.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}, name)
	})
	// A build that is interrupted early leaves its work folder behind: let it be where the binary is.
	cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOTMPDIR="+dir)
	// make does not hand an interrupt on to go: it takes the whole group to be told by the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("make build in %s: %w\n%s", root, err, text), ctx.Err())
	}
	return nil
}
