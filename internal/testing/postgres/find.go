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

// errNone says what to do.
var errNone = errors.New("no PostgreSQL server is installed (looked for postgres and initdb in PATH and in /usr/lib/postgresql/*/bin): " +
	"run internal/testing/postgres-packages.sh, or install the package postgresql")

// Find tells why there is no PostgreSQL to start, and what to install; nil if there is one.
func Find() error {
	_, err := find()
	return err
}

// find is the folder of the programs: the one in PATH, else the newest of those where Debian has them.
func find() (folder string, err error) {
	if path, err := exec.LookPath("postgres"); err == nil && complete(filepath.Dir(path)) {
		return filepath.Dir(path), nil
	}
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	folders = slices.DeleteFunc(folders, func(folder string) bool { return !complete(folder) })
	if len(folders) == 0 {
		return "", errNone
	}
	return slices.MaxFunc(folders, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), nil
}

// complete tells whether a folder has the programs that are needed.
func complete(folder string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// version is the one in /usr/lib/postgresql/VERSION/bin.
func version(folder string) float64 {
	v, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(folder)), 64)
	return v
}
