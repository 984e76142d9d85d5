package image

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// contextOf copies the build context of a Dockerfile and a .dockerignore, from a tree with some files, and returns what is
// in the copy.
func contextOf(t *testing.T, dockerfile, ignore string) ([]string, error) {
	t.Helper()
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	for _, file := range []string{"go.mod", "Makefile", "secret", "cmd/main.go", "cmd/main_test.go", "config/health/rules.yaml", "config/rbac/role.yaml"} {
		write(t, filepath.Join(root, file), file, 0o600)
	}
	write(t, filepath.Join(root, "Dockerfile"), dockerfile, 0o600)
	if ignore != "" {
		write(t, filepath.Join(root, ".dockerignore"), ignore, 0o600)
	}
	if err := copyContext(root, dir); err != nil {
		return nil, err
	}
	var copied []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			copied = append(copied, file)
			if content, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(content) != file {
				t.Errorf("%s holds %q, %v", file, content, err)
			}
		}
		return err
	})
	return copied, err
}

func TestContextIsWhatTheDockerfileCopies(t *testing.T) {
	for _, tc := range []struct {
		reason             string
		dockerfile, ignore string
		want               []string
	}{
		{"files and folders", "FROM golang AS build\nCOPY go.mod Makefile ./\nCOPY cmd cmd\n", "", []string{"Makefile", "cmd/main.go", "cmd/main_test.go", "go.mod"}},
		{"a part of a folder", "FROM golang AS build\nCOPY config/health config/health\n", "", []string{"config/health/rules.yaml"}},
		{"but for what is excluded", "FROM golang\nCOPY cmd cmd\nCOPY config config\n", "# why\n*\n!cmd\n!config/health\n**/*_test.go\n", []string{"cmd/main.go", "config/health/rules.yaml"}},
		{"of all stages; what is copied between them is not of the context", "FROM golang AS one\nCOPY cmd cmd\nFROM scratch\nCOPY --from=one /secret /\n", "", []string{"cmd/main.go", "cmd/main_test.go"}},
	} {
		got, err := contextOf(t, tc.dockerfile, tc.ignore)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}
}

func TestContextIsRefused(t *testing.T) {
	for _, tc := range []struct {
		reason             string
		dockerfile, ignore string
		want               string
	}{
		{"what is not there", "FROM golang\nCOPY docs docs\n", "", "Dockerfile:2: COPY docs docs: docs is not in the build context"},
		{"nor a file", "FROM golang\nCOPY go.sum ./\n", "", "go.sum is not in the build context"},
		{"what is excluded", "FROM golang\nCOPY cmd cmd\n", "*\n!config\n", "cmd is not in the build context"},
		{"to another place", "FROM golang\nCOPY cmd src/cmd\n", "", "is not understood; understood are COPY FOLDER FOLDER"},
		{"what is in a folder", "FROM golang\nCOPY cmd ./\n", "", "is not understood"},
		{"a file from a folder", "FROM golang\nCOPY cmd/main.go ./\n", "", "is not understood"},
		{"a pattern", "FROM golang\nCOPY cmd/* cmd\n", "", "is not understood"},
		{"a flag", "FROM golang\nCOPY --chown=1:1 go.mod ./\n", "", "is not understood"},
		{"a pattern that is none", "FROM golang\nCOPY cmd cmd\n", "[\n", "read patterns of"},
	} {
		if _, err := contextOf(t, tc.dockerfile, tc.ignore); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}
