package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	if err := checkExists(address); err != nil {
		complain(stderr, err)
		return exitFailed
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

// checkExists refuses a database of SQLite's that no server has made: opening it would make an empty one, and a token in it
// would be no server's.
func checkExists(address string) error {
	file, isFile := strings.CutPrefix(address, "sqlite:")
	if !isFile {
		return nil
	}
	const remedy = "name the server's own with --database, --database-file or " + databaseVariable
	if file == ":memory:" {
		return fmt.Errorf("database %q is the memory of this command alone: %s, which has to be a file or PostgreSQL", address, remedy)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("database %q: there is no such file: %s; if that is new, start the server first, which makes it", address, remedy)
	}
	return nil // whatever else there is, opening it says
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
