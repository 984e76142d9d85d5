package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestFolder_Write_ReplacesStaleFiles(t *testing.T) {
	f := folder{path: filepath.Join(t.TempDir(), "recorded"), complete: true}
	recordings := map[string][]byte{"a": []byte("one\ntwo\n"), "b": []byte("three\n")}
	if err := f.write(recordings); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.path, "README.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if same, err := f.compare(t.Context(), recordings, &out); !same || err != nil {
		t.Errorf("the written files differ from their recordings: %v\n%s", err, &out)
	}

	out.Reset()
	recordings["a"] = []byte("one\nfour\n")
	recordings["c"] = []byte("new\n")
	delete(recordings, "b")
	same, err := f.compare(t.Context(), recordings, &out)
	if same || err != nil {
		t.Errorf("compare found no difference, error %v; want differences in a, b and c", err)
	}
	for _, want := range []string{"\n-two\n+four\n", "\n+new\n", "b.yaml: the catalogue no longer has this moment"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("compare printed\n%s\nwant %q in it", &out, want)
		}
	}

	if err := f.write(recordings); err != nil {
		t.Fatal(err)
	}
	if got := names(t, f.path); !slices.Equal(got, []string{"README.md", "a.yaml", "c.yaml"}) {
		t.Errorf("the folder has %v, want it without b.yaml and with all others", got)
	}
}

func TestFolder_OneScenario_KeepsOtherFiles(t *testing.T) {
	f := folder{path: t.TempDir()}
	if err := os.WriteFile(f.file("other"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recordings := map[string][]byte{"a": []byte("one\n")}
	if err := f.write(recordings); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if same, err := f.compare(t.Context(), recordings, &out); !same || err != nil {
		t.Errorf("the written file differs from its recording: %v\n%s", err, &out)
	}
	if got := names(t, f.path); !slices.Equal(got, []string{"a.yaml", "other.yaml"}) {
		t.Errorf("the folder has %v, want a.yaml and other.yaml", got)
	}
}

func TestScenarios_Only(t *testing.T) {
	if all, err := (options{}).scenarios(); err != nil || len(all) < 30 {
		t.Errorf("without --only there are %d scenarios, error %v; want 30 or more", len(all), err)
	}
	if one, err := (options{only: "healthy"}).scenarios(); err != nil || len(one) != 1 || one[0].Name != "healthy" {
		t.Errorf("--only=healthy selected %v, error %v; want the scenario healthy", one, err)
	}
	if _, err := (options{only: "absent"}).scenarios(); err == nil || !strings.Contains(err.Error(), "--only") {
		t.Errorf("--only=absent returned the error %v, want one that names --only", err)
	}
}
