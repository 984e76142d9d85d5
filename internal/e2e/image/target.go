package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// authorities is where Debian and the image of Go have the certificate authorities, and where Go programs look for them.
	authorities = "/etc/ssl/certs/ca-certificates.crt"
	// nonRoot is the user and the group of the project's images.
	nonRoot = "65532:65532"
)

// Target writes the image of a program of the project, "agent" or "controlplane", for an architecture; see [Archive]. The
// source tree is at root. The image is the same as the Dockerfile's target of that name: the binary of `make build` and the certificate
// authorities, here those of this machine. VERSION is taken from the environment.
func Target(ctx context.Context, root, target, arch, tarPath, ref string) error {
	if !slices.Contains([]string{"agent", "controlplane"}, target) {
		return fmt.Errorf("target %q is unknown: use agent or controlplane", target)
	}
	if _, err := os.Stat(authorities); err != nil {
		return fmt.Errorf("find the certificate authorities: %w: install the package ca-certificates", err)
	}
	dir, err := os.MkdirTemp("", target+"-image-")
	if err != nil {
		return fmt.Errorf("create folder for the build: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := makeBuild(ctx, root, "./cmd/"+target, arch, dir); err != nil {
		return fmt.Errorf("build %s in %s: %w", target, root, err)
	}
	return Archive(tarPath, ref, Spec{
		Arch:       arch,
		Files:      map[string]string{"/" + target: filepath.Join(dir, target), authorities: authorities},
		User:       nonRoot,
		Entrypoint: []string{"/" + target},
	})
}

// makeBuild runs `make build` of a command in the source tree at root, for an architecture. The binary is written to dir.
func makeBuild(ctx context.Context, root, command, arch, dir string) error {
	cmd := exec.CommandContext(ctx, "make", "build", "WHAT="+command, "BIN="+dir) //nolint:gosec // our own folder
	cmd.Dir = root
	// A parent make passes its variables on, but its flags and job slots are not for this one.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}, name)
	})
	// An interrupted build leaves its work folder behind: GOTMPDIR places it where the caller removes it.
	cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+arch, "GOTMPDIR="+dir)
	// make does not pass an interrupt on to go, so the whole process group gets it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("make build: %w\n%s", err, text), ctx.Err())
	}
	return nil
}
