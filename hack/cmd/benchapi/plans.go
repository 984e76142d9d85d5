package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// explain writes the plans of all queries of the page to a file. It runs the test that knows the queries, which fails on a full
// table scan. The statistics of the database are updated before, as the database does itself within a minute of the first
// reports. The API is stopped, because SQLite permits only one process.
func (w *benchmark) explain(ctx context.Context) error {
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
	if err := w.db.runMaintenance(ctx); err != nil {
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
