// Command controlplane runs the reference control-plane API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/threeport/threeport-agent/internal/controlplane/server"
)

// The exit codes besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

// version is set when a release is built.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command: it returns its exit code when ctx ends or it cannot go on.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	config := server.DefaultConfig()
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&config.BindAddress, "bind-address", config.BindAddress, "`HOST:PORT` to listen on; port 0 takes a free one")
	flags.StringVar(&config.Database, "database", config.Database, "where rows are kept: sqlite:`FILE`, or sqlite::memory:")
	flags.BoolVar(&config.StrictV0, "strict-v0", config.StrictV0, "be no better than Threeport's own API: the same RuntimeEventUID posted twice makes two rows (for tests)")
	flags.BoolVar(&config.AuthEnabled, "auth-enabled", config.AuthEnabled, "serve TLS, to clients with a certificate only")
	flags.StringVar(&config.CertFile, "cert-file", config.CertFile, "PEM `file` of the server's certificate")
	flags.StringVar(&config.KeyFile, "key-file", config.KeyFile, "PEM `file` of its private key")
	flags.StringVar(&config.CAFile, "ca-file", config.CAFile, "PEM `file` of the authorities of clients' certificates")
	showVersion := flags.Bool("version", false, "print the version and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // flags has said why
	}
	if *showVersion {
		_, _ = fmt.Fprintln(stdout, "controlplane", buildVersion())
		return 0
	}
	if flags.NArg() > 0 {
		complain(stderr, fmt.Errorf("unexpected argument %q: there are only flags, see --help", flags.Arg(0)))
		return exitUsage
	}
	if err := config.Validate(); err != nil {
		complain(stderr, fmt.Errorf("%w; see --help", err))
		return exitUsage
	}
	api, err := server.New(ctx, config, slog.New(slog.NewJSONHandler(stderr, nil)))
	if err != nil {
		if config.AuthEnabled && errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w; give --cert-file, --key-file and --ca-file, or --auth-enabled=false for plain HTTP", err)
		}
		complain(stderr, err)
		return exitFailed
	}
	if err := api.Run(ctx); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return 0
}

// complain writes an error as one line.
func complain(stderr io.Writer, err error) {
	_, _ = fmt.Fprintln(stderr, "controlplane:", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// buildVersion is the release, or what the toolchain knows of the build.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
