package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMachine_Plugins_AllOrNone(t *testing.T) {
	dir := t.TempDir()
	for i, name := range cniPlugins {
		if hasPlugins(dir) {
			t.Errorf("%d of %d plugins were taken for all", i, len(cniPlugins))
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !hasPlugins(dir) {
		t.Error("all plugins are there, and were not found")
	}
}

func TestMachine_FindsProgramsOnPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	const name = "no-such-program-yet"
	if path := findProgram(name); path != "" {
		t.Fatalf("found %s", path)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := findProgram(name); got != path {
		t.Errorf("found %q, want %q", got, path)
	}
}

func TestOptions_RealNode_NeedsAllComponents(t *testing.T) {
	if err := (Options{RealNode: true, Components: APIOnly()}).Validate(); err == nil {
		t.Error("a real node without a scheduler was accepted")
	}
	if err := (Options{RealNode: true}).Validate(); err != nil {
		t.Error(err)
	}
}
