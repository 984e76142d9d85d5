package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// explain writes the plans of all queries of the page on a database to a file. The test that knows the queries does it, and
// fails if one of them reads a whole table.
func explain(ctx context.Context, root, address, file string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run=TestEveryQueryOfThePageUsesAnIndex", //nolint:gosec // the project's own test
		"./internal/controlplane/server/store", "-args", "-plans-of="+address, "-plans-to="+file)
	cmd.Dir = root
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("explain the page's queries: %w", err)
	}
	return nil
}
