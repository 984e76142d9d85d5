package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// folder is a folder with recordings, one file for each moment.
type folder struct {
	path string
	// complete means that all moments were recorded, so that other files are stale.
	complete bool
}

func (f folder) file(moment string) string { return filepath.Join(f.path, moment+".yaml") }

// write replaces the files.
func (f folder) write(recordings map[string][]byte) error {
	if err := os.MkdirAll(f.path, 0o750); err != nil {
		return fmt.Errorf("write recordings: %w", err)
	}
	for moment, text := range recordings {
		if err := os.WriteFile(f.file(moment), text, 0o644); err != nil { //nolint:gosec // they are part of the source
			return fmt.Errorf("write recordings: %w", err)
		}
	}
	stale, err := f.stale(recordings)
	for _, file := range stale {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// stale returns the files of moments that no longer exist.
func (f folder) stale(recordings map[string][]byte) ([]string, error) {
	if !f.complete {
		return nil, nil
	}
	files, err := filepath.Glob(f.file("*"))
	return slices.DeleteFunc(files, func(file string) bool {
		return recordings[strings.TrimSuffix(filepath.Base(file), ".yaml")] != nil
	}), err
}

// compare prints the differences from the existing files, and reports whether there are none.
func (f folder) compare(ctx context.Context, recordings map[string][]byte, out io.Writer) (bool, error) {
	same := true
	for _, moment := range slices.Sorted(maps.Keys(recordings)) {
		existing, err := os.ReadFile(f.file(moment))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("compare recordings: %w", err)
		}
		if bytes.Equal(existing, recordings[moment]) {
			continue
		}
		same = false
		if err := diff(ctx, f.file(moment), recordings[moment], out); err != nil {
			return false, err
		}
	}
	stale, err := f.stale(recordings)
	for _, file := range stale {
		same = false
		_, _ = fmt.Fprintf(out, "%s: the catalogue no longer has this moment\n", file)
	}
	if same {
		_, _ = fmt.Fprintf(out, "%d recordings are the same.\n", len(recordings))
	}
	return same, err
}

// diff prints the change of a file. The file need not exist.
func diff(ctx context.Context, file string, text []byte, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "diff", "-U", "8", "--new-file", "--label", file, "--label", file+" (recorded now)", file, "-") //nolint:gosec // our own file
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), out, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // they differ
		return nil
	}
	if err != nil {
		return fmt.Errorf("compare %s: %w", file, err)
	}
	return nil
}
