package process

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Build compiles a command of the project, such as "./cmd/agent", into a folder with an absolute path, and returns the path
// of the binary. The flags are flags of go build, such as "-race".
//
// The user's cache folder keeps the last binary of each command and its flags, because the go command does not link a binary again
// that is current. Linking takes seconds, and a dozen suites build the same programs.
func Build(ctx context.Context, root, command, dir string, flags ...string) (string, error) {
	flags, cgo := likeMake(flags)
	out := filepath.Join(dir, filepath.Base(command))
	kept, release, err := keptBinary(command, flags)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	defer release()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	// Without debug information, a binary is linked in two thirds of the time.
	args := append([]string{"build", "-o", kept, "-buildvcs=false", "-ldflags=-s -w"}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, command)...) //nolint:gosec // the project's own commands
	cmd.Dir = root
	// An interrupted build may leave its work folder behind, so it is in the folder of the binary.
	cmd.Env = append(os.Environ(), cgo, "GOTMPDIR="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, text)
	}
	// A later build does not replace the copy. If this process wrote it, a child that starts at that moment would keep it open, and
	// the kernel would not execute it.
	if text, err := exec.CommandContext(ctx, "cp", "-f", kept, out).CombinedOutput(); err != nil { //nolint:gosec // the caller names the folder
		return "", fmt.Errorf("build %s: copy the binary: %w\n%s", command, err, text)
	}
	return out, nil
}

// likeMake adds the flags and the environment variable of the Makefile, so that both share the build cache.
func likeMake(flags []string) (all []string, cgo string) {
	if slices.Contains(flags, "-race") {
		return append(flags, "-gcflags=modernc.org/...=-race=false"), "CGO_ENABLED=1"
	}
	return append(flags, "-trimpath"), "CGO_ENABLED=0"
}

// keptBinary returns the path of a command's binary in the user's cache folder, and locks it until release is called.
func keptBinary(command string, flags []string) (path string, release func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, err
	}
	key := sha256.Sum256(fmt.Append(nil, command, flags))
	dir := filepath.Join(cache, "threeport-agent", "programs", fmt.Sprintf("%x", key[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the cache folder
	if err != nil {
		return "", nil, err
	}
	release = func() { _ = lock.Close() } // this releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		release()
		return "", nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return filepath.Join(dir, filepath.Base(command)), release, nil
}
