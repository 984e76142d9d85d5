package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakePin is a pin of a tiny program of the given source, which needs no network.
func fakePin(t *testing.T, source string) builder {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":     "module example.test/pin\n\ngo 1.26\n\nrequire example.test/dep v1.2.3\n\nreplace example.test/dep => ./dep\n",
		"go.sum":     "",
		"main.go":    source,
		"dep/go.mod": "module example.test/dep\n\ngo 1.26\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return builder{
		pin:    pin{name: "fake", module: "example.test/dep", packages: map[Component]string{Kwok: "example.test/pin"}},
		source: dir,
		target: filepath.Join(t.TempDir(), "cache"),
	}
}

// syncBuffer is a log that several builders share.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func TestBuild_Concurrent_BuildsOnce(t *testing.T) {
	b := fakePin(t, "package main\n\nfunc main() { println(\"ran\") }\n")
	var log syncBuffer
	b.log = &log
	// A killed build left this file. The next build ignores it.
	path := filepath.Join(b.target, string(Kwok))
	half := filepath.Join(b.target, unfinishedPrefix+"0", string(Kwok))
	if err := errors.Join(os.MkdirAll(filepath.Dir(half), 0o700), os.WriteFile(half, []byte("half"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got, err := b.binary(t.Context(), Kwok); err != nil || got != path {
				t.Errorf("got %q, %v, want %q", got, err, path)
			}
		})
	}
	group.Wait()
	if n := strings.Count(log.b.String(), "building kwok v1.2.3"); n != 1 {
		t.Errorf("built %d times, want once:\n%s", n, log.b.String())
	}
	if left, err := filepath.Glob(filepath.Join(b.target, unfinishedPrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	out, err := exec.CommandContext(t.Context(), path).CombinedOutput()
	if err != nil || string(out) != "ran\n" {
		t.Errorf("the binary does not work: %v\n%s", err, out)
	}
}

func TestBuild_Fails_ReturnsReasonAndLeavesNoBinary(t *testing.T) {
	b := fakePin(t, "package main\n\nfunc main() { undefinedFunction() }\n")
	b.log = t.Output()
	_, err := b.binary(t.Context(), Kwok)
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{"undefined: undefinedFunction", b.source, assetsEnv} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if executable(filepath.Join(b.target, string(Kwok))) {
		t.Error("the failed build left a binary")
	}
}

func TestBuild_Cancelled(t *testing.T) {
	b := fakePin(t, "package main\n\nfunc main() {}\n")
	b.log = t.Output()
	if err := os.MkdirAll(b.target, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := tryLock(filepath.Join(b.target, lockName), os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.binary(ctx, Kwok); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestCacheKey(t *testing.T) {
	b := fakePin(t, "package main\n")
	key := func(goVersion string) string {
		t.Helper()
		k, err := cacheKey(b.source, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before := key("go1.26.0")
	if again := key("go1.26.0"); again != before {
		t.Errorf("the same pin has the keys %s and %s", before, again)
	}
	if other := key("go1.26.1"); other == before {
		t.Error("another Go version has the same key")
	}
	if err := os.WriteFile(filepath.Join(b.source, "go.sum"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other := key("go1.26.0"); other == before {
		t.Error("another go.sum has the same key")
	}
	before = key("go1.26.0")
	if err := os.WriteFile(filepath.Join(b.source, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other := key("go1.26.0"); other == before {
		t.Error("another main package of the pin has the same key")
	}
}

func TestAssets_AllOrNone(t *testing.T) {
	dir := t.TempDir()
	for i, c := range All() {
		if got := assets(dir); len(got) != 0 {
			t.Errorf("with %d of %d binaries: got %v, want none", i, len(All()), got)
		}
		if err := os.WriteFile(filepath.Join(dir, string(c)), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := assets(dir); len(got) != len(All()) {
		t.Errorf("with all binaries: got %v", got)
	}
}

func TestLinkerFlags_OnlyForKubernetes(t *testing.T) {
	got := linkerFlags(kubernetesModule, "v1.36.3")
	for _, want := range []string{"version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36", "version.gitTreeState=clean"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if got := linkerFlags("sigs.k8s.io/kwok", "v0.8.0"); got != "-s -w" {
		t.Errorf("kwok: got %q", got)
	}
}

func TestRootAbove(t *testing.T) {
	root, err := SourceTree()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := filepath.Abs("../../.."); err != nil || root != want {
		t.Errorf("got %s, want %s (%v)", root, want, err)
	}
	if got, ok := rootAbove(t.TempDir()); ok {
		t.Errorf("outside of the tree: got %s", got)
	}
}

func TestRunDirs_OfEndedProcesses_AreRemoved(t *testing.T) {
	parent := t.TempDir()
	alive, err := newRunDir(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newRunDir(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.lock.Close()                         // as the kernel does for a dead process
	partly, err := newRunDir(t.Context(), parent) // its owner was killed while it removed the directory
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(partly.file(lockName)), partly.lock.Close()); err != nil {
		t.Fatal(err)
	}
	next, err := newRunDir(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*runDir{dead, partly} {
		if _, err := os.Stat(d.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a dead one's directory is still there (%v)", err)
		}
	}
	for _, d := range []*runDir{alive, next} {
		if _, err := os.Stat(d.path); err != nil {
			t.Errorf("a living one's directory: %v", err)
		}
		if err := d.remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestOptions(t *testing.T) {
	tests := []struct {
		reason  string
		options Options
		wantErr bool
	}{
		{reason: "everything by default", options: Options{}},
		{reason: "a bare API", options: Options{Components: APIOnly()}},
		{reason: "nodes need kwok", options: Options{Components: APIOnly(), Nodes: 1}, wantErr: true},
		{reason: "not a component", options: Options{Components: []Component{Kubectl}}, wantErr: true},
	}
	for _, tt := range tests {
		if err := tt.options.Validate(); (err != nil) != tt.wantErr {
			t.Errorf("%s: got %v", tt.reason, err)
		}
	}
	got := Options{Components: []Component{Kwok, APIServer}}.withDefaults()
	if want := []Component{Etcd, APIServer, Kwok}; !slices.Equal(got.Components, want) || got.Nodes != 1 {
		t.Errorf("got %v with %d nodes, want %v with 1", got.Components, got.Nodes, want)
	}
}

func TestFreePorts_Differ(t *testing.T) {
	ports, err := freePorts(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 20 {
		t.Errorf("not 20 different ports: %v", ports)
	}
}
