// Command image builds a container image of the project without Docker. It runs in the root of the source tree; see package
// internal/e2e/image.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/threeport/threeport-agent/internal/e2e/image"
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
	target := flags.String("target", "agent", "which `target` of the Dockerfile to build: agent or controlplane")
	arch := flags.String("arch", runtime.GOARCH, "`architecture` to build for, such as arm64")
	output := flags.String("output", "", "`file` to write the image to (default bin/TARGET-image.tar)")
	ref := flags.String("ref", "", "`name` of the image, as NAME[:TAG] (default threeport-TARGET:latest)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags, see --help", flags.Arg(0))
	}
	archive := cmp.Or(*output, "bin/"+*target+"-image.tar")
	name := cmp.Or(*ref, "threeport-"+*target+":latest")
	if err := image.Target(ctx, ".", *target, *arch, archive, name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s is the image %s for linux/%s: docker load --input %s\n", archive, name, *arch, archive)
	return err
}
