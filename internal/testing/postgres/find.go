package postgres

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// errNotInstalled says how to install PostgreSQL.
var errNotInstalled = errors.New("no PostgreSQL server is installed (looked for postgres and initdb in PATH and in /usr/lib/postgresql/*/bin): " +
	"run `make postgres-packages`, or install the package postgresql")

// Installed returns nil if there is a PostgreSQL to start, and otherwise an error that says how to install it.
func Installed() error {
	_, err := findPrograms()
	return err
}

// findPrograms returns the directory of the programs: that in PATH, else the newest of Debian's.
func findPrograms() (folder string, err error) {
	if path, err := exec.LookPath("postgres"); err == nil && hasPrograms(filepath.Dir(path)) {
		return filepath.Dir(path), nil
	}
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	folders = slices.DeleteFunc(folders, func(folder string) bool { return !hasPrograms(folder) })
	if len(folders) == 0 {
		return "", errNotInstalled
	}
	return slices.MaxFunc(folders, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), nil
}

// hasPrograms reports whether a directory has all required programs.
func hasPrograms(folder string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// version is the version in /usr/lib/postgresql/VERSION/bin.
func version(folder string) float64 {
	v, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(folder)), 64)
	return v
}
