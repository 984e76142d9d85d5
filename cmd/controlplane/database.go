package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/threeport/threeport-agent/internal/controlplane/server"
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
