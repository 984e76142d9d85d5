package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const kubernetesModule = "k8s.io/kubernetes"

// builder builds the binaries of one pin.
type builder struct {
	pin    pin
	source string // the pin's folder, with go.mod and go.sum
	target string // the cache folder of exactly this pin
	log    io.Writer
}

// newBuilder returns the builder of a pin's folder.
func newBuilder(ctx context.Context, p pin, source string, log io.Writer) (builder, error) {
	cache, err := cacheDir()
	if err != nil {
		return builder{}, err
	}
	goVersion, err := goTool(ctx, source, "env", "GOVERSION")
	if err != nil {
		return builder{}, err
	}
	key, err := cacheKey(source, strings.TrimSpace(string(goVersion))+p.tags)
	if err != nil {
		return builder{}, err
	}
	return builder{pin: p, source: source, target: filepath.Join(cache, "bin", p.name+"-"+key), log: log}, nil
}

// buildFlags are inputs of a build; a change causes a new build.
func buildFlags() []string {
	return []string{"-trimpath", "-mod=readonly", "-buildvcs=false"}
}

// binary returns the path of a binary, and builds it if necessary. The file at that path is always complete: the linker writes to
// another folder, and the result is moved.
func (b builder) binary(ctx context.Context, c Component) (string, error) {
	path := filepath.Join(b.target, string(c))
	if executable(path) {
		return path, nil
	}
	if err := os.MkdirAll(b.target, 0o700); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	held, err := lock(ctx, filepath.Join(b.target, lockName), func() {
		_, _ = fmt.Fprintf(b.log, "waiting for another process that builds %s\n", b.pin.name)
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = held.Close() }()
	if executable(path) { // the other process built this binary
		return path, nil
	}
	version, err := b.pin.version(ctx, b.source)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(b.log, "building %s %s (minutes the first time, seconds with a warm Go build cache) … ", c, version)
	start := time.Now()
	if err := b.build(ctx, c, version, path); err != nil {
		_, _ = fmt.Fprintln(b.log, "failed")
		return "", err
	}
	_, _ = fmt.Fprintf(b.log, "done in %s\n", time.Since(start).Round(time.Second))
	return path, nil
}

// build compiles and links one binary. The caller holds the lock of the folder, so unfinished files in it are from killed builds.
func (b builder) build(ctx context.Context, c Component, version, path string) error {
	if err := removeUnfinished(b.target); err != nil {
		return err
	}
	work, err := os.MkdirTemp(b.target, unfinishedPrefix)
	if err != nil {
		return fmt.Errorf("create folder for unfinished build: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	unfinished := filepath.Join(work, string(c))
	args := append([]string{"build"}, buildFlags()...)
	args = append(args, "-tags", b.pin.tags, "-ldflags", linkerFlags(b.pin.module, version), "-o", unfinished, b.pin.packages[c])
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // built from constants and the pin
	cmd.Dir = b.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=", "GOARCH=")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second // for go to remove its work folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(
			fmt.Errorf("build %s %s: %w\n%s\nRepeat it by hand: cd %s && CGO_ENABLED=0 go build -o /dev/null %s\n"+
				"The first build downloads modules (see GOPROXY).%s",
				c, version, err, out, b.source, b.pin.packages[c], b.otherwise(c)),
			ctx.Err())
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("finish build of %s: %w", c, err)
	}
	return nil
}

// otherwise names the other way to get a component of the cluster.
func (b builder) otherwise(c Component) string {
	if !slices.Contains(All(), c) {
		return ""
	}
	return fmt.Sprintf(" To use ready binaries instead, let %s name a folder with %s", assetsEnv, join(All()))
}

// unfinishedPrefix is the prefix of the folders of the linker.
const unfinishedPrefix = "unfinished-"

func removeUnfinished(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, unfinishedPrefix+"*"))
	if err != nil {
		return fmt.Errorf("list unfinished builds: %w", err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove unfinished build: %w", err)
		}
	}
	return nil
}

// linkerFlags strip the binary and, for Kubernetes, set its version as its release build does. Without that every component
// reports v0.0.0-master.
func linkerFlags(module, version string) string {
	flags := []string{"-s", "-w"}
	if module != kubernetesModule {
		return strings.Join(flags, " ")
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	stamps := [][2]string{
		{"gitVersion", version},
		{"gitMajor", parts[0]},
		{"gitMinor", parts[min(1, len(parts)-1)]},
		{"gitCommit", "module-" + version},
		{"gitTreeState", "clean"},
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, s := range stamps {
			flags = append(flags, "-X", pkg+"."+s[0]+"="+s[1])
		}
	}
	return strings.Join(flags, " ")
}
