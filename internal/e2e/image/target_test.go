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

func TestTheProjectsDockerfile(t *testing.T) {
	for _, target := range targets {
		got, err := FromDockerfile(filepath.Join(root, "Dockerfile"), target, here)
		want := Spec{
			Files:      map[string]string{"/" + target: "/here" + built + target, authorities: "/here" + authorities},
			User:       "65532:65532",
			Entrypoint: []string{"/" + target},
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", target, got, err, want)
		}
	}
	byDefault, err := FromDockerfile(filepath.Join(root, "Dockerfile"), "", here)
	if err != nil || !slices.Equal(byDefault.Entrypoint, []string{"/agent"}) {
		t.Errorf("without a target Docker builds %+v, %v, want the agent", byDefault, err)
	}
}

func TestTargets(t *testing.T) {
	t.Setenv("VERSION", "v0-test") // as Docker's build has it
	for _, target := range targets {
		t.Run(target, func(t *testing.T) { testTarget(t, target) })
	}
}

func testTarget(t *testing.T, target string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := Target(t.Context(), root, target, path, "localhost/target:test"); err != nil {
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
		{"released without cgo, so that it needs no library", "CGO_ENABLED=0"},
		{"without the paths of this machine", "-trimpath=true"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).CombinedOutput()
		if err != nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: no %s in what go version says: %v\n%s", tc.reason, tc.want, err, out)
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
	write(t, filepath.Join(root, "Dockerfile"), "FROM golang AS build\nCOPY Makefile ./\nFROM scratch AS agent\n", 0o600)
	write(t, filepath.Join(root, "Makefile"), "build:\n\t"+recipe+"\n", 0o600)
	return root
}

func TestTargetTellsWhatMakeSays(t *testing.T) {
	dir := tree(t, "@echo no way >&2; exit 3")
	path := filepath.Join(dir, "agent.tar")
	err := Target(t.Context(), dir, "agent", path, "localhost/agent:test")
	if err == nil || !strings.Contains(err.Error(), "no way") || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want what make said, and where", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is an archive (%v)", err)
	}
}

func TestTargetIsCancelled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	// The recipe's child is what has to be told, as go is: make would wait for it.
	dir := tree(t, "@read line < "+fifo)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Target(ctx, dir, "agent", filepath.Join(dir, "agent.tar"), "localhost/agent:test") }()
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

func TestUnknownFileOfTheBuildStage(t *testing.T) {
	if _, err := onThisMachine("/out/other", "agent", "/x"); err == nil || !strings.Contains(err.Error(), "/out/agent") {
		t.Errorf("got %v, want what is known", err)
	}
	if got, err := onThisMachine("/out/agent", "agent", "/x"); err != nil || got != "/x/agent" {
		t.Errorf("got %s, %v", got, err)
	}
}
