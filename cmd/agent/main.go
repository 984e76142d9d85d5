// Command agent reports the status of deployed workloads to a control-plane API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The exit codes besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(execute(ctrl.SetupSignalHandler(), flag.CommandLine, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the agent until ctx ends or it fails, and returns its exit code. Errors of the command line are printed, later ones
// are logged.
func execute(ctx context.Context, flags *flag.FlagSet, args []string, stdout, stderr io.Writer) int {
	flags.Init("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o := newOptions(flags)
	var live *liveConfig
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, "usage: agent [flags]\n\n")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return 0
	case err == nil && o.showVersion:
		_, _ = fmt.Fprintln(stdout, versionText())
		return 0
	case err == nil && o.printConfig:
		if err = configFormat.Print(stdout, flags); err == nil {
			return 0
		}
	case err == nil:
		o, live, err = openConfig(args, o.configFile, metrics.Registry)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "agent: %v; see --help\n", err)
		return exitUsage
	}
	if o.pprofAddress == "" {
		runtime.MemProfileRate = 0 // the samples take 2 MB, and only pprof serves them
	}
	if err := run(ctx, o, live); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; set another address with --metrics-bind-address or --health-probe-bind-address", err)
		}
		ctrl.Log.Error(err, "The agent failed")
		return exitFailed
	}
	return 0
}
