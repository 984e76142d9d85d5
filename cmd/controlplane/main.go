// Command controlplane runs the control-plane API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/version"
)

// The exit codes besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command until ctx ends or it fails, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "cluster":
			return runCluster(ctx, args[1:], stdout, stderr)
		case "token":
			return runToken(ctx, args[1:], stdout, stderr)
		case "workload":
			return runWorkload(ctx, args[1:], stdout, stderr)
		case "backup":
			return runBackup(ctx, args[1:], stdout, stderr)
		}
	}
	o := newOptions()
	switch err := o.flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		o.printHelp(stdout)
		return 0
	case err != nil:
		printError(stderr, fmt.Errorf("%w; see --help", err))
		return exitUsage
	}
	if o.showVersion {
		_, _ = fmt.Fprintln(stdout, "controlplane", version.String())
		return 0
	}
	if o.flags.NArg() > 0 {
		printError(stderr, fmt.Errorf("unexpected argument %q: the commands are cluster, token, workload and backup; see --help", o.flags.Arg(0)))
		return exitUsage
	}
	config, err := o.complete()
	if err != nil {
		printError(stderr, fmt.Errorf("%w; see --help", err))
		return exitUsage
	}
	stopProfiles, err := serveProfiles(ctx, o.pprofAddress)
	if err != nil {
		printError(stderr, err)
		return exitFailed
	}
	defer stopProfiles()
	return serve(ctx, config, stderr)
}

// serve runs the API until ctx ends.
func serve(ctx context.Context, config server.Config, stderr io.Writer) int {
	api, err := server.New(ctx, config, slog.New(slog.NewJSONHandler(stderr, nil)))
	if err != nil {
		if lacksTLSFile(config, err) {
			err = fmt.Errorf("%w; set --cert-file, --key-file and --ca-file, or --auth-enabled=false for plain HTTP", err)
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; set another address with --bind-address", err)
		}
		printError(stderr, err)
		return exitFailed
	}
	if err := api.Run(ctx); err != nil {
		printError(stderr, err)
		return exitFailed
	}
	return 0
}

// lacksTLSFile reports whether the error is about a missing file of the server's TLS.
func lacksTLSFile(config server.Config, err error) bool {
	missing, ok := errors.AsType[*fs.PathError](err)
	return ok && config.AuthEnabled && errors.Is(missing, fs.ErrNotExist) &&
		slices.Contains([]string{config.CertFile, config.KeyFile, config.CAFile}, missing.Path)
}

// printError prints an error as one line.
func printError(stderr io.Writer, err error) {
	_, _ = fmt.Fprintln(stderr, "controlplane:", strings.ReplaceAll(err.Error(), "\n", "; "))
}
