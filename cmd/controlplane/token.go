package main

import (
	"context"
	"io"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// runToken is the command token. It creates, lists and revokes tokens in the database, because the API cannot create the first
// one. The server may run meanwhile.
func runToken(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var db databaseFlags
	rest, err := db.extract(args)
	if err != nil {
		printError(stderr, err)
		return exitUsage
	}
	if len(rest) == 0 || !slices.Contains([]string{"create", "list", "revoke"}, rest[0]) {
		return auth.RunTokenCommand(ctx, rest, nil, stdout, stderr) // which prints the usage
	}
	address, code := db.existing(stderr)
	if code != 0 {
		return code
	}
	opened, err := store.Open(ctx, store.Config{Address: address, KeepIndexes: true})
	if err != nil {
		printError(stderr, err)
		return exitFailed
	}
	code = auth.RunTokenCommand(ctx, rest, opened, stdout, stderr)
	if err := opened.Close(); err != nil {
		printError(stderr, err)
		return exitFailed
	}
	return code
}
