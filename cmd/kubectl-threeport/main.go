// Command kubectl-threeport is a kubectl plugin that shows whether the workloads of a control plane run and, if not, why.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/threeport/threeport-agent/internal/kubectl"
	"github.com/threeport/threeport-agent/internal/version"
)

func main() {
	klog.SetLogger(logr.Discard()) // client-go logs its retries; the plugin prints errors itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := kubectl.Run(ctx, os.Args[1:], streams, version.String())
	stop()
	os.Exit(code)
}
