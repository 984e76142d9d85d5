package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// explain writes the plans of all queries of the page to a file. The test that knows the queries does it, and fails if one of
// them reads a whole table. The database has counted its rows before, as it does by itself within a minute: the first reports
// have just come. The API does not run meanwhile: an SQLite file has one process.
func (w *world) explain(ctx context.Context) error {
	if w.plans == "" {
		return nil
	}
	file, err := filepath.Abs(w.plans) // the test has another folder
	if err != nil {
		return err
	}
	if err := w.stop(); err != nil {
		return err
	}
	if err := w.db.settle(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run=TestPlans_UIQueries_UseIndexes", //nolint:gosec // the project's own test
		"./internal/server/store", "-args", "-plans-of="+w.db.address, "-plans-to="+file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	return w.start(ctx)
}
