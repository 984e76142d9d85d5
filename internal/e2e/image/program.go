package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// Behave is the name of the image of internal/e2e/behave, a program that test workloads run: it fails as its flags say.
const Behave = "localhost/behave:1"

// Program compiles a command of the source tree at root, such as "./internal/e2e/behave", and writes an image that has
// nothing else: see [Archive]. The command is at /NAME, and is the entrypoint.
func Program(ctx context.Context, root, command, tarPath, ref string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("create folder for %s: %w", command, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing is left there that matters
	name := path.Base(command)
	binary := filepath.Join(dir, name)
	if err := Compile(ctx, root, command, binary); err != nil {
		return err
	}
	return Archive(tarPath, ref, Spec{Files: map[string]string{"/" + name: binary}, Entrypoint: []string{"/" + name}})
}

// Compile builds a command of the source tree at root as a static binary for this machine's kernel, into a file. The
// file's folder is there.
func Compile(ctx context.Context, root, command, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, command) //nolint:gosec // our own commands
	cmd.Dir = root
	// A build that is interrupted early leaves its work folder behind: let it be where the binary is.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+filepath.Dir(binary))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("build %s: %w\n%s", command, err, text), ctx.Err())
	}
	return nil
}
