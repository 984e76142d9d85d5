package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// root is that of the source tree.
var root = filepath.Join("..", "..", "..")

// targets are those of the project's Dockerfile.
var targets = []string{"agent", "controlplane"}

// The Dockerfile and [Target] describe the same images.
func TestTarget_AsInDockerfile(t *testing.T) {
	_, stages, _ := strings.Cut(readText(t, "Dockerfile"), "\nFROM scratch AS ")
	var names []string
	for stage := range strings.SplitSeq(stages, "\nFROM scratch AS ") {
		target, rest, _ := strings.Cut(stage, "\n")
		want := []string{
			"COPY --from=build /out/" + target + " /" + target,
			"COPY --from=build " + authorities + " " + authorities,
			"USER " + nonRoot,
			`ENTRYPOINT ["/` + target + `"]`,
		}
		var got []string
		for line := range strings.Lines(rest) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the Dockerfile's target %s has the lines %q, want %q", target, got, want)
		}
		names = append(names, target)
	}
	if last := names[len(names)-1]; last != "agent" {
		t.Errorf("without a target Docker builds %q, want the agent", last)
	}
	if slices.Sort(names); !slices.Equal(names, targets) {
		t.Errorf("the Dockerfile has the targets %q, want %q", names, targets)
	}
}

// The images are built from the files that Docker has too.
func TestTarget_Image(t *testing.T) {
	t.Setenv("VERSION", "v0-test") // as Docker's build has it
	dir := buildContext(t)
	for _, target := range targets {
		t.Run(target, func(t *testing.T) { testTarget(t, dir, target) })
	}
}

func testTarget(t *testing.T, root, target string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := Target(t.Context(), root, target, runtime.GOARCH, path, "localhost/target:test"); err != nil {
		t.Fatal(err)
	}
	img, config := read(t, path, "localhost/target:test")
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("the image is for %s/%s", config.OS, config.Architecture)
	}
	if want := (v1.Config{User: "65532:65532", Entrypoint: []string{"/" + target}}); !reflect.DeepEqual(config.Config, want) {
		t.Errorf("config %+v, want %+v", config.Config, want)
	}
	trusted, err := os.ReadFile(authorities)
	if err != nil {
		t.Fatal(err)
	}
	layer := entries(t, img)
	binary := layer[0].Content
	layer[0].Content = ""
	want := []entry{
		{Name: target, Mode: 0o555},
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/ssl/", Mode: 0o755},
		{Name: "etc/ssl/certs/", Mode: 0o755},
		{Name: authorities[1:], Mode: 0o444, Content: string(trusted)},
	}
	if !slices.Equal(layer, want) {
		t.Errorf("the layer has other files, modes or contents than the Dockerfile says")
	}
	program := filepath.Join(t.TempDir(), target)
	write(t, program, binary, 0o700)
	for _, tc := range []struct{ reason, want string }{
		{reason: "without cgo, so that it needs no library", want: "CGO_ENABLED=0"},
		{reason: "without the paths of this machine", want: "-trimpath=true"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).CombinedOutput()
		if err != nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: no %s in the output of go version: %v\n%s", tc.reason, tc.want, err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), "v0-test") {
		t.Errorf("the version: %v\n%s", err, out)
	}
}

// tree writes a source tree whose `make build` has a recipe.
func tree(t *testing.T, recipe string) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, filepath.Join(root, "Makefile"), "build:\n\t"+recipe+"\n", 0o600)
	return root
}

func TestTarget_BuildFails_ReturnsOutputOfMake(t *testing.T) {
	dir := tree(t, "@echo no way >&2; exit 3")
	path := filepath.Join(dir, "agent.tar")
	err := Target(t.Context(), dir, "agent", runtime.GOARCH, path, "localhost/agent:test")
	if err == nil || !strings.Contains(err.Error(), "no way") || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want what make said, and where", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Target left an archive (%v)", err)
	}
}

func TestTarget_Cancelled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	// make waits for the recipe's child, so the child must get the signal too, as go does in a real build.
	dir := tree(t, "@read line < "+fifo)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Target(ctx, dir, "agent", runtime.GOARCH, filepath.Join(dir, "agent.tar"), "localhost/agent:test")
	}()
	// This waits for somebody who reads, which is the recipe.
	pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close() //nolint:errcheck // nothing was written
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestTarget_Unknown(t *testing.T) {
	err := Target(t.Context(), root, "other", runtime.GOARCH, filepath.Join(t.TempDir(), "x.tar"), "localhost/x:test")
	if err == nil || !strings.Contains(err.Error(), "agent or controlplane") {
		t.Errorf("got %v, want the targets that there are", err)
	}
}
