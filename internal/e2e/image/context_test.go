package image

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// buildContext returns a new folder with the files that the project's Dockerfile copies from its build context. Docker has no
// others, so a build in this folder fails if the Dockerfile copies too little, or if .dockerignore excludes too much.
func buildContext(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ignored := ignorePatterns(t)
	copies := 0
	for line := range strings.Lines(readText(t, "Dockerfile")) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "COPY" || strings.HasPrefix(words[1], "--from=") {
			continue
		}
		copies++
		last := len(words) - 1
		for _, source := range words[1:last] {
			if !keepsPlace(source, words[last]) {
				t.Fatalf("this test does not know how to carry out %q", line)
			}
			copySource(t, source, dir, ignored)
		}
	}
	if copies == 0 {
		t.Fatal("the Dockerfile copies nothing from its build context")
	}
	return dir
}

// keepsPlace reports whether a COPY has the form COPY FOLDER FOLDER, or COPY FILE… ./ for files of the root.
func keepsPlace(source, target string) bool {
	info, err := os.Stat(filepath.Join(root, source))
	if err != nil || !info.IsDir() {
		return target == "./" && path.Base(source) == source
	}
	return target == source
}

// copySource copies a file or folder of the source tree to the same place in another folder, without ignored files.
func copySource(t *testing.T, source, dir string, ignored ignoreList) {
	t.Helper()
	tree := os.DirFS(root)
	copied := 0
	err := fs.WalkDir(tree, source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || ignored.has(name) {
			return err
		}
		copied++
		content, err := fs.ReadFile(tree, name)
		if err == nil {
			write(t, filepath.Join(dir, name), string(content), 0o600)
		}
		return err
	})
	if err != nil || copied == 0 {
		t.Errorf("copy %s from the build context: got %d files, %v, want at least one", source, copied, err)
	}
}

// ignoreList are the patterns of .dockerignore. The last one that matches a file or one of its folders decides.
type ignoreList []string

func ignorePatterns(t *testing.T) (out ignoreList) {
	t.Helper()
	for line := range strings.Lines(readText(t, ".dockerignore")) {
		pattern := strings.TrimSpace(line)
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		glob := strings.TrimPrefix(strings.TrimPrefix(pattern, "!"), "**/")
		if _, err := path.Match(glob, ""); err != nil || strings.Contains(glob, "**") {
			t.Fatalf("this test does not know the pattern %q of .dockerignore", pattern)
		}
		out = append(out, pattern)
	}
	return out
}

func (l ignoreList) has(name string) (ignored bool) {
	for _, pattern := range l {
		glob, included := strings.CutPrefix(pattern, "!")
		base, anywhere := strings.CutPrefix(glob, "**/")
		for at := name; at != "."; at = path.Dir(at) {
			match, _ := path.Match(glob, at)
			if anywhere {
				match, _ = path.Match(base, path.Base(at))
			}
			if match {
				ignored = !included
				break
			}
		}
	}
	return ignored
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
