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

// databaseVariable is the variable of the environment with the database's address.
const databaseVariable = "CONTROLPLANE_DATABASE"

// database is where the address of the database comes from: others can read a command line, so that one with a password
// is better kept in a file, or in the environment.
type database struct{ flag, file string }

func (d *database) register(flags *flag.FlagSet) {
	flags.StringVar(&d.flag, "database", "", "the `address` of the database: sqlite:FILE, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/NAME; "+
		"without this and the next, what "+databaseVariable+" says (default "+server.DefaultDatabase+")")
	flags.StringVar(&d.file, "database-file", "", "a `file` with the address of the database, so that no password is on the command line")
}

// address is what the flag says, or the file, or the environment, or the default.
func (d *database) address() (string, error) {
	switch {
	case d.flag != "" && d.file != "":
		return "", errors.New("--database and --database-file: accepted is one of them")
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

// existing is the address of a database that a server has made. Without one it complains, and returns the exit code.
func (d *database) existing(stderr io.Writer) (address string, code int) {
	address, err := d.address()
	if err == nil {
		err = store.ValidateAddress(address)
	}
	if err != nil {
		complain(stderr, err)
		return "", exitUsage
	}
	if err := checkExists(address); err != nil {
		complain(stderr, err)
		return "", exitFailed
	}
	return address, 0
}

// checkExists refuses a database of SQLite's that no server has made: opening it would make an empty one, which is no
// server's.
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
			return nil, fmt.Errorf("--%s: accepted is the address of a database, or a file with it", name)
		}
	}
	return rest, nil
}
