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

// What the Dockerfile's targets copy from its build stage, besides the binary.
const (
	built       = "/out/"                              // where the binaries are
	authorities = "/etc/ssl/certs/ca-certificates.crt" // where Debian has them, and so the image of Go
)

// Target writes the image of a target of the Dockerfile, such as "agent", whose source tree is at root; see [Archive].
// Files, user and entrypoint come from the Dockerfile, the binary from `make build WHAT=./cmd/TARGET`, which has no more
// of the source tree than the Dockerfile copies. VERSION is taken from the environment, as Docker takes its argument.
// The certificate authorities are those of this machine.
func Target(ctx context.Context, root, target, tarPath, ref string) error {
	dir, err := os.MkdirTemp("", target+"-image-")
	if err != nil {
		return fmt.Errorf("create folder for the build: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing is left there that matters
	spec, err := FromDockerfile(filepath.Join(root, "Dockerfile"), target, func(stagePath string) (string, error) {
		return onThisMachine(stagePath, target, dir)
	})
	if err != nil {
		return err
	}
	sources := filepath.Join(dir, "src")
	if err := copyContext(root, sources); err != nil {
		return err
	}
	if err := makeBuild(ctx, sources, "./cmd/"+target, dir); err != nil {
		return fmt.Errorf("build %s from what the Dockerfile copies of %s: %w", target, root, err)
	}
	return Archive(tarPath, ref, spec)
}

// onThisMachine returns the file that stands for one of the Dockerfile's build stage. The target's binary is in dir.
func onThisMachine(stagePath, target, dir string) (string, error) {
	switch stagePath {
	case built + target:
		return filepath.Join(dir, target), nil
	case authorities:
		if _, err := os.Stat(authorities); err != nil {
			return "", fmt.Errorf("find the certificate authorities: %w: install the package ca-certificates", err)
		}
		return authorities, nil
	}
	return "", fmt.Errorf("package internal/e2e/image knows where %s and %s are on this machine, and nothing else of the build stage",
		built+target, authorities)
}

// makeBuild runs `make build` of a command in a folder, into another.
func makeBuild(ctx context.Context, sources, command, dir string) error {
	cmd := exec.CommandContext(ctx, "make", "build", "WHAT="+command, "BIN="+dir) //nolint:gosec // our own folder
	cmd.Dir = sources
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
		return errors.Join(fmt.Errorf("make build: %w\n%s", err, text), ctx.Err())
	}
	return nil
}
