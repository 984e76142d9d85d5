package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// databaseVariable is the environment variable with the database's address.
const databaseVariable = "CONTROLPLANE_DATABASE"

// databaseFlags are the sources of the database's address. Other users can read a command line, so an address with a password
// belongs into a file or the environment.
type databaseFlags struct{ flag, file string }

func (d *databaseFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&d.flag, "database", "", "the `address` of the database: sqlite:FILE, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/NAME; "+
		"without it and --database-file, the environment variable "+databaseVariable+" is used (default "+server.DefaultDatabase+")")
	flags.StringVar(&d.file, "database-file", "", "`file` with the address of the database, to keep a password off the command line")
}

// address is the address in the flag, the file, the environment or the default, in this order.
func (d *databaseFlags) address() (string, error) {
	switch {
	case d.flag != "" && d.file != "":
		return "", errors.New("--database and --database-file exclude each other: set one of them")
	case d.flag != "":
		return d.flag, nil
	case d.file != "":
		text, err := os.ReadFile(d.file)
		if err != nil {
			return "", fmt.Errorf("--database-file: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	if given := os.Getenv(databaseVariable); given != "" {
		return given, nil
	}
	return server.DefaultDatabase, nil
}

// existing is the address of a database that exists. If there is none it prints the error and returns the exit code.
func (d *databaseFlags) existing(stderr io.Writer) (address string, code int) {
	address, err := d.address()
	if err == nil {
		err = store.ValidateAddress(address)
	}
	if err != nil {
		printError(stderr, err)
		return "", exitUsage
	}
	if err := checkExists(address); err != nil {
		printError(stderr, err)
		return "", exitFailed
	}
	return address, 0
}

// checkExists refuses an SQLite database that does not exist: opening it would create an empty one that no server uses.
func checkExists(address string) error {
	file, isFile := strings.CutPrefix(address, "sqlite:")
	if !isFile {
		return nil
	}
	const hint = "set the address of the server's database with --database, --database-file or " + databaseVariable
	if file == ":memory:" {
		return fmt.Errorf("database %q exists in the memory of one process only: %s, which must be a file or PostgreSQL", address, hint)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("database %q: no such file: %s; for a new database, start the server first, which creates it", address, hint)
	}
	return nil // opening reports any other error
}

// extract parses the database flags anywhere in the arguments, and returns the other arguments.
func (d *databaseFlags) extract(args []string) (rest []string, err error) {
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
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
			return nil, fmt.Errorf("--%s: the value is missing: set the address of a database, or a file with it", name)
		}
	}
	return rest, nil
}
