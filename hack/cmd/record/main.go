// Command record runs the scenarios of package internal/e2e/scenario on a real node, and records the objects of the API server
// at each moment to internal/health/testdata/recorded. The README there describes the files. It needs Linux and root; see
// package internal/e2e/cluster.
//
//	record                       all scenarios
//	record --only crash-at-once  one scenario
//	record --check               compares with the existing files; exit code 1 for a difference
//	record --operators           the scenarios of package internal/e2e/operators, to config/health/testdata/recorded
//
// The scenarios of operators need neither a real node nor root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The folders of the recordings, relative to the module's root.
const (
	recorded          = "internal/health/testdata/recorded"
	recordedOperators = "config/health/testdata/recorded"
)

// validate returns an error that names the invalid flag and its accepted values.
func (o options) validate(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q: there are only flags, such as --only %s", args[0], args[0])
	case o.parallel < 1:
		return fmt.Errorf("--parallel is %d: give a number above 0", o.parallel)
	}
	return nil
}

func main() {
	var o options
	flag.BoolVar(&o.check, "check", false, "compare with the existing files instead of writing them")
	flag.StringVar(&o.only, "only", "", "`name` of the only scenario to run, or of the only operator; empty for all")
	flag.BoolVar(&o.operators, "operators", false, "record custom resources of operators, without a real node")
	flag.StringVar(&o.dir, "dir", "", "`folder` of the recordings (default "+recorded+", with --operators "+recordedOperators+")")
	flag.IntVar(&o.parallel, "parallel", 10, "scenarios that run at a time")
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(2)
	}
	if o.dir == "" {
		o.dir = map[bool]string{false: recorded, true: recordedOperators}[o.operators]
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	same, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signal handlers
	}
	if !same {
		os.Exit(1)
	}
}
