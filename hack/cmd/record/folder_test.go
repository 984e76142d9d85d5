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

func TestWriteAndCompare(t *testing.T) {
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
		t.Errorf("the files that were just written differ: %v\n%s", err, &out)
	}

	out.Reset()
	recordings["a"] = []byte("one\nfour\n")
	recordings["c"] = []byte("new\n")
	delete(recordings, "b")
	same, err := f.compare(t.Context(), recordings, &out)
	if same || err != nil {
		t.Errorf("nothing differs: %v", err)
	}
	for _, want := range []string{"\n-two\n+four\n", "\n+new\n", "b.yaml: there is no such moment any more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}

	if err := f.write(recordings); err != nil {
		t.Fatal(err)
	}
	if got := names(t, f.path); !slices.Equal(got, []string{"README.md", "a.yaml", "c.yaml"}) {
		t.Errorf("there are %v, expected the file of b to be removed and no other", got)
	}
}

func TestWrite_OneScenario_KeepsOtherFiles(t *testing.T) {
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
		t.Errorf("it differs: %v\n%s", err, &out)
	}
	if got := names(t, f.path); !slices.Equal(got, []string{"a.yaml", "other.yaml"}) {
		t.Errorf("there are %v", got)
	}
}

func TestOnly_UnknownScenario_Fails(t *testing.T) {
	if all, err := (options{}).scenarios(); err != nil || len(all) < 30 {
		t.Errorf("%d scenarios, %v", len(all), err)
	}
	if one, err := (options{only: "healthy"}).scenarios(); err != nil || len(one) != 1 || one[0].Name != "healthy" {
		t.Errorf("got %v, %v", one, err)
	}
	if _, err := (options{only: "absent"}).scenarios(); err == nil || !strings.Contains(err.Error(), "--only") {
		t.Errorf("got %v", err)
	}
}
