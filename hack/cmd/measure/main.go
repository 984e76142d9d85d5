// Command measure measures the resource usage and the delays of the agent on a local control plane, and prints the results as a
// Markdown table. It exits with code 1 if a result misses its bound.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var size size
	flag.IntVar(&size.events, "events", 30*60, "Events that are written for the measurement of delay")
	flag.IntVar(&size.rate, "rate", 30, "of them a second")
	agent := flag.String("agent", "", "binary of the agent to measure, of an earlier version for example; empty builds it from the source")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	missed, err := measure(ctx, *agent, size)
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signal handlers
	}
	if missed {
		os.Exit(1)
	}
}
