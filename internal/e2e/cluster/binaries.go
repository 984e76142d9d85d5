package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// assetsEnv names a folder of prebuilt binaries, as for controller-runtime's envtest.
const assetsEnv = "KUBEBUILDER_ASSETS"

// Binaries are the paths of executables.
type Binaries map[Component]string

// pin is a module under internal/e2e/cluster/pins whose go.mod fixes the version of some binaries.
type pin struct {
	name     string               // the folder
	module   string               // the module whose version counts
	packages map[Component]string // the main package of each binary
	tags     string               // build tags
}

// source returns the folder of a pin, below the root of the source tree.
func (p pin) source(root string) string { return filepath.Join(root, pinsDir, p.name) }

// pins returns all pins, with one of Kubernetes.
func pins(kubernetes pin) []pin {
	return []pin{
		{name: "etcd", module: "go.etcd.io/etcd/server/v3", packages: map[Component]string{
			Etcd: "go.etcd.io/etcd/server/v3",
		}},
		kubernetes,
		{name: "kwok", module: "sigs.k8s.io/kwok", packages: map[Component]string{
			Kwok: "sigs.k8s.io/kwok/cmd/kwok",
		}},
	}
}

// FindBinaries returns the paths of the wanted binaries, and builds those that are missing.
//
// If KUBEBUILDER_ASSETS names a folder that holds all components, they are taken from there. Otherwise they come
// from the user's cache folder. `go build` builds them there from the modules pinned in internal/e2e/cluster/pins. That takes
// minutes the first time, and again after a change of a pin or of Go's version. kubectl on the PATH is preferred.
//
// THREEPORT_KUBERNETES chooses another minor of Kubernetes, whose pin is beside that of the default. kubectl comes from that pin
// too. The binaries of each pin have a folder in the cache, so those of several minors are kept.
//
// It writes progress to log, which may be nil. Several processes may call it at the same time: one builds, the others wait. An
// error of a build contains the compiler's output.
func FindBinaries(ctx context.Context, log io.Writer, want ...Component) (Binaries, error) {
	if log == nil {
		log = io.Discard
	}
	chosen, err := chosenMinor()
	if err != nil {
		return nil, err
	}
	found := readyBinaries(chosen, want)
	missing := slices.DeleteFunc(slices.Clone(want), func(c Component) bool { return found[c] != "" })
	if len(missing) == 0 {
		return found, nil
	}

	root, err := SourceTree()
	if err != nil {
		return nil, err
	}
	kubernetes, err := kubernetesPin(ctx, root, chosen)
	if err != nil {
		return nil, err
	}
	if slices.Contains(missing, Kubelet) && kubernetes.packages[Kubelet] == "" {
		return nil, fmt.Errorf("%s=%s has no %s, which only the default has: unset %s", KubernetesEnv, chosen, Kubelet, KubernetesEnv)
	}
	for _, p := range pins(kubernetes) {
		b, err := newBuilder(ctx, p, p.source(root), log)
		if err != nil {
			return nil, err
		}
		for _, c := range missing {
			if p.packages[c] == "" {
				continue
			}
			if found[c], err = b.binary(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// readyBinaries returns the wanted binaries that need no build.
func readyBinaries(chosen string, want []Component) Binaries {
	found := Binaries{}
	if slices.Contains(want, Kubectl) && chosen == "" {
		if path, err := exec.LookPath(string(Kubectl)); err == nil {
			found[Kubectl] = path
		}
	}
	for c, path := range assets(os.Getenv(assetsEnv)) {
		if slices.Contains(want, c) {
			found[c] = path
		}
	}
	return found
}

// Program is a program of another project, pinned by a module of this repository.
type Program struct {
	// Source is the folder of the pin: it has go.mod and go.sum, and may have a main package.
	Source string
	// Module is the module whose version counts, and Package is the main package: "." for the pin's own.
	Module, Package string
	// Name is the name of the binary; that of the pin's folder if empty. Tags are build tags, separated by commas.
	Name, Tags string
}

// Build returns the path of a program in the user's cache folder, and builds it if necessary, as FindBinaries does.
func (p Program) Build(ctx context.Context, log io.Writer) (string, error) {
	folder := filepath.Base(p.Source)
	name := Component(cmp.Or(p.Name, folder))
	one := pin{name: folder, module: p.Module, packages: map[Component]string{name: p.Package}, tags: p.Tags}
	b, err := newBuilder(ctx, one, p.Source, log)
	if err != nil {
		return "", err
	}
	return b.binary(ctx, name)
}

// assets returns the binaries in a folder if it has every component, else none, to avoid an accidental mix of versions.
func assets(dir string) Binaries {
	if dir == "" {
		return nil
	}
	found := Binaries{}
	for _, c := range All() {
		path := filepath.Join(dir, string(c))
		if !executable(path) {
			return nil
		}
		found[c] = path
	}
	return found
}

func executable(path string) bool {
	info, err := os.Stat(path) //nolint:gosec // the user's own environment names the folder
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// cacheKey returns a short hash of all inputs of a build.
func cacheKey(source, goVersion string) (string, error) {
	hash := sha256.New()
	code, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", fmt.Errorf("read pin: %w", err)
	}
	names := []string{"go.mod", "go.sum"}
	for _, file := range code {
		names = append(names, filepath.Base(file))
	}
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(source, name)) //nolint:gosec // a file of this repository
		if err != nil {
			return "", fmt.Errorf("read pin: %w", err)
		}
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", name, len(raw), raw)
	}
	_, _ = fmt.Fprintln(hash, goVersion, runtime.GOOS, runtime.GOARCH, buildFlags())
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// pinsDir is the folder of the pins, relative to the root of the source tree.
var pinsDir = filepath.Join("internal", "e2e", "cluster", "pins")

// SourceTree returns the root of the source tree that contains the working directory.
func SourceTree() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	root, ok := rootAbove(start)
	if !ok {
		return "", fmt.Errorf("no %s in %s or above it: run this within the source tree of threeport-agent, "+
			"or let %s name a folder with %s", pinsDir, start, assetsEnv, join(All()))
	}
	return root, nil
}

func rootAbove(dir string) (string, bool) {
	for {
		_, err := os.Stat(filepath.Join(dir, pinsDir, kubernetesPinName, "go.mod"))
		if err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// goTool runs the go command, and returns its output.
func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // fixed commands
	cmd.Dir = dir
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return nil, fmt.Errorf("go %s (is Go installed and on the PATH?): %w", strings.Join(args, " "), err)
}
