package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// runBackup is the command backup: it writes a copy of an SQLite database to stdout, which is all that a container without a
// shell can be asked for. The server may run meanwhile.
func runBackup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var where database
	rest, err := where.cut(args)
	switch {
	case err == nil && len(rest) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, rest[0]):
		_, _ = io.WriteString(stderr, "usage: controlplane backup [--database=sqlite:FILE | --database-file=FILE] > COPY\n")
		return 0
	case err == nil && len(rest) > 0:
		err = fmt.Errorf("unexpected argument %q: accepted are --database and --database-file; the copy is written to stdout", rest[0])
	}
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	address, code := where.existing(stderr)
	if code != 0 {
		return code
	}
	copied, err := store.Backup(ctx, address)
	if err != nil {
		complain(stderr, err)
		return exitFailed
	}
	defer copied.Close() //nolint:errcheck // it is only read
	// A write to a pipe that nobody reads cannot be called off, and there is nothing to clean up.
	defer context.AfterFunc(ctx, func() { os.Exit(exitFailed) })()
	if _, err := io.Copy(stdout, copied); err != nil {
		complain(stderr, fmt.Errorf("write the backup: %w", err))
		return exitFailed
	}
	return 0
}
