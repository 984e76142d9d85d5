package world

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

// Suite has the resources that the tests of a package share.
type Suite struct {
	Ctx context.Context //nolint:containedctx // ends after the tests, before the cleanup
	Dir string          // for files; removed at the end

	cleanups []func() error
}

// Main is the TestMain of a suite: it calls setUp, runs the tests, releases the resources and exits. It also releases them if
// setUp fails.
func Main(m *testing.M, setUp func(*Suite) error) {
	flag.Parse()
	code, err := run(m, setUp)
	if err != nil {
		fmt.Fprintln(os.Stderr, "set up the suite or clean it up:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, setUp func(*Suite) error) (code int, err error) {
	dir, err := os.MkdirTemp("", "threeport-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ctx, cancel := context.WithCancel(context.Background())
	s := &Suite{Ctx: ctx, Dir: dir}
	defer func() {
		cancel()
		for _, cleanup := range slices.Backward(s.cleanups) {
			err = errors.Join(err, cleanup())
		}
	}()
	if err := setUp(s); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// Cleanup registers a function that releases a resource. The last one runs first.
func (s *Suite) Cleanup(f func() error) { s.cleanups = append(s.cleanups, f) }
