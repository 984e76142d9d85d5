package main

import (
	"context"
	"io"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// runToken is the command token: it makes, lists and ends tokens in the database itself, as the first one cannot be
// made through the API. The server may run meanwhile.
func runToken(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var where database
	rest, err := where.cut(args)
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	if len(rest) == 0 || !slices.Contains([]string{"create", "list", "revoke"}, rest[0]) {
		return auth.RunTokenCommand(ctx, rest, nil, stdout, stderr) // which says how it is used
	}
	address, code := where.existing(stderr)
	if code != 0 {
		return code
	}
	opened, err := store.Open(ctx, store.Config{Address: address})
	if err != nil {
		complain(stderr, err)
		return exitFailed
	}
	code = auth.RunTokenCommand(ctx, rest, opened, stdout, stderr)
	if err := opened.Close(); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return code
}
