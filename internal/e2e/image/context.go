package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// copyContext copies into a folder what the Dockerfile at root copies from its build context, which is the source tree
// there but for what .dockerignore names. So what Docker would not find is not found in the folder either.
//
// Files have to keep their places: understood are COPY FOLDER FOLDER, and COPY FILE… ./ of files at the root.
func copyContext(root, dir string) error {
	instructions, err := parseFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return err
	}
	ignored, err := readIgnored(filepath.Join(root, ".dockerignore"))
	if err != nil {
		return err
	}
	for _, i := range instructions {
		if i.name != "COPY" || strings.HasPrefix(i.args, "--from=") {
			continue
		}
		if err := i.copyFromContext(root, dir, ignored); err != nil {
			return fmt.Errorf("%s:%w", filepath.Join(root, "Dockerfile"), err)
		}
	}
	return nil
}

// readIgnored reads the patterns of .dockerignore; none if there is no such file.
func readIgnored(file string) (*patternmatcher.PatternMatcher, error) {
	var patterns []string
	text, err := os.Open(file) //nolint:gosec // the source tree's own
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read patterns: %w", err)
	default:
		defer text.Close() //nolint:errcheck // it is only read
		if patterns, err = ignorefile.ReadAll(text); err != nil {
			return nil, fmt.Errorf("read patterns of %s: %w", file, err)
		}
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf("read patterns of %s: %w", file, err)
	}
	return ignored, nil
}

// copyFromContext carries out a COPY from the build context.
func (i instruction) copyFromContext(root, dir string, ignored *patternmatcher.PatternMatcher) error {
	words := strings.Fields(i.args)
	last := len(words) - 1
	for _, source := range words[:max(last, 0)] {
		if strings.HasPrefix(source, "--") || !keepsPlace(root, source, words[last]) {
			return i.errorf("is not understood; understood are COPY FOLDER FOLDER, and COPY FILE… ./ of the root's files")
		}
		copied, err := copyTree(root, source, dir, ignored)
		if err != nil {
			return i.errorf("%w", err)
		}
		if copied == 0 {
			return i.errorf("%s is not in the build context: there is no such file, or .dockerignore excludes it", source)
		}
	}
	return nil
}

// keepsPlace tells whether what is copied is at the same place in the image as in the tree at root.
func keepsPlace(root, source, destination string) bool {
	if destination != "./" || strings.Contains(source, "/") {
		return source == destination
	}
	info, err := os.Stat(filepath.Join(root, source))
	return err != nil || !info.IsDir() // of a folder, Docker would copy what is in it
}

// copyTree copies a file, or the files of a folder, from one tree to the same place in another, and tells how many.
func copyTree(root, source, dir string, ignored *patternmatcher.PatternMatcher) (copied int, err error) {
	err = fs.WalkDir(os.DirFS(root), path.Clean(source), func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() { // below a folder that is excluded there may be what is not
			return err
		}
		if excluded, err := ignored.MatchesOrParentMatches(filepath.FromSlash(file)); err != nil || excluded {
			return err
		}
		copied++
		return copyFile(filepath.Join(root, filepath.FromSlash(file)), filepath.Join(dir, filepath.FromSlash(file)))
	})
	return copied, err
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from) //nolint:gosec // the source tree's own
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600) //nolint:gosec // into a folder of our own, below it: io/fs knows no other names
}
