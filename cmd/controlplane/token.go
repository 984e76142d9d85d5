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
	return onDatabase(ctx, args, auth.RunTokenCommand, []string{"create", "list", "revoke"}, stdout, stderr)
}

// runCluster is the command cluster. It creates the token of an agent, and prints how to install the agent with it.
func runCluster(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return onDatabase(ctx, args, auth.RunClusterCommand, []string{"add"}, stdout, stderr)
}

// tokenCommand is a command on the tokens of a database.
type tokenCommand func(ctx context.Context, args []string, s auth.CommandStore, stdout, stderr io.Writer) int

// onDatabase runs one of the verbs of a command on the database of the flags. Without a verb, the command prints its usage.
func onDatabase(ctx context.Context, args []string, run tokenCommand, verbs []string, stdout, stderr io.Writer) int {
	var db databaseFlags
	rest, err := db.extract(args)
	if err != nil {
		printError(stderr, err)
		return exitUsage
	}
	if len(rest) == 0 || !slices.Contains(verbs, rest[0]) {
		return run(ctx, rest, nil, stdout, stderr)
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
	code = run(ctx, rest, opened, stdout, stderr)
	if err := opened.Close(); err != nil {
		printError(stderr, err)
		return exitFailed
	}
	return code
}
