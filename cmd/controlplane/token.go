package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/controlplane/server/access"
	"github.com/threeport/threeport-agent/internal/controlplane/server/store"
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
		return access.RunTokenCommand(ctx, rest, nil, stdout, stderr) // which says how it is used
	}
	address, err := where.address()
	if err == nil {
		err = store.ValidateAddress(address)
	}
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	opened, err := store.Open(ctx, store.Config{Address: address})
	if err != nil {
		complain(stderr, err)
		return exitFailed
	}
	code := access.RunTokenCommand(ctx, rest, opened, stdout, stderr)
	if err := opened.Close(); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return code
}

// cut takes the flags that name the database from arguments, wherever they are, and returns the others: these are the
// command's own.
func (d *database) cut(args []string) (rest []string, err error) {
	flags := flag.NewFlagSet("controlplane token", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	d.register(flags)
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || flags.Lookup(name) == nil {
			rest = append(rest, args[i])
			continue
		}
		one := args[i : i+1]
		if !hasValue && i+1 < len(args) {
			i++
			one = args[i-1 : i+1]
		}
		if err := flags.Parse(one); err != nil {
			return nil, fmt.Errorf("--%s: accepted is the address of a database, or a file with it", name)
		}
	}
	return rest, nil
}
