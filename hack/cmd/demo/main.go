// Command demo shows the agent at work. It runs a Kubernetes control plane, the control-plane API and the agent, deploys
// workloads as an upstream controller does, and prints their rows in the control-plane API.
//
// With --node real the containers of the workloads run, and the agent is a Deployment with mutual TLS to the API. That needs
// Linux and root; see package internal/e2e/cluster.
//
// With --once it is a test: it ends when the API has all expected rows, and fails with the missing ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The exit codes besides 0.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as in a shell: the demo was interrupted before it was up
)

// config is the parsed command line.
type config struct {
	once    bool
	node    string
	timeout time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // parse has said why
	}
	err = newDemo(cfg, stdout).run(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(stderr, "demo:", err)
	if errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	return exitFailed
}

// parse parses the flags, and prints errors to stderr.
func parse(args []string, stderr io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&cfg.once, "once", false, "end when everything expected is in the control-plane API; else fail and list the missing rows")
	flags.StringVar(&cfg.node, "node", nodeFake, "real to have containers run on a real node, if this machine can (Linux, root); or fake")
	flags.DurationVar(&cfg.timeout, "timeout", 3*time.Minute, "how long that may take, from when the workloads are deployed")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: there are only flags, see --help", flags.Arg(0))
	case cfg.node != nodeFake && cfg.node != nodeReal:
		err = fmt.Errorf("--node is %q: give %s or %s", cfg.node, nodeFake, nodeReal)
	case cfg.timeout <= 0:
		err = fmt.Errorf("--timeout is %s: give a duration above 0, such as 3m", cfg.timeout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "demo:", err)
	}
	return cfg, err
}
