// Command image builds the agent's container image, without Docker. It is what `make image` runs, in the root of the
// source tree; see package hack/image.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/threeport/threeport-agent/hack/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	output := flags.String("output", "bin/agent-image.tar", "`file` to write the image to")
	ref := flags.String("ref", "threeport-agent:latest", "`name` of the image, as NAME[:TAG]")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags, see --help", flags.Arg(0))
	}
	if err := image.Target(ctx, ".", "agent", *output, *ref); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s is the image %s for linux/%s: docker load --input %s\n", *output, *ref, runtime.GOARCH, *output)
	return err
}
