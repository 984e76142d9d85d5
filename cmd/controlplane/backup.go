package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// runBackup is the command backup. It writes a copy of an SQLite database to stdout, so that it works in a container without a
// shell. The server may run meanwhile.
func runBackup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var db databaseFlags
	rest, err := db.extract(args)
	switch {
	case err == nil && len(rest) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, rest[0]):
		_, _ = io.WriteString(stderr, "usage: controlplane backup [--database=sqlite:FILE | --database-file=FILE] > COPY\n")
		return 0
	case err == nil && len(rest) > 0:
		err = fmt.Errorf("unexpected argument %q: use only --database or --database-file; the copy is written to stdout", rest[0])
	}
	if err != nil {
		printError(stderr, err)
		return exitUsage
	}
	address, code := db.existing(stderr)
	if code != 0 {
		return code
	}
	copied, err := store.Backup(ctx, address)
	if err != nil {
		printError(stderr, err)
		return exitFailed
	}
	defer copied.Close() //nolint:errcheck // it is only read
	// A write to a pipe without a reader cannot be cancelled, and there is nothing to clean up.
	defer context.AfterFunc(ctx, func() { os.Exit(exitFailed) })()
	if _, err := io.Copy(stdout, copied); err != nil {
		printError(stderr, fmt.Errorf("write the backup: %w", err))
		return exitFailed
	}
	return 0
}
