package main

import (
	"context"
	"fmt"
	"io"

	"github.com/threeport/threeport-agent/internal/controlplane/server/store"
)

// runBackup is the command backup: it writes a copy of an SQLite database to stdout, which is all that a container without a
// shell can be asked for. The server may run meanwhile.
func runBackup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var where database
	rest, err := where.cut(args)
	if err == nil && len(rest) > 0 {
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
	if err := store.Backup(ctx, address, stdout); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return 0
}
