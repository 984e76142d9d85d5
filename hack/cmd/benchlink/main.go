//go:build linux

// Command benchlink measures the number of Events a second that an agent delivers over a link with delay and loss, with report
// sets and with v0. The control-plane API and the agent's delivery run in separate network namespaces, which a [wire] connects;
// they use the kernel's TCP. The program prints the results as a Markdown table. It exits with code 1 if report sets are not at
// least 20 times as fast as sequential posts. docs/scale.md has the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	var err error
	if len(os.Args) > 1 && os.Args[1] == agentCommand {
		err = runAgentSide(ctx, os.Args[2:])
	} else {
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchlink:", err)
		os.Exit(1)
	}
}

// link is the connection between agent and API.
type link struct {
	delay      time.Duration // each way
	loss       float64       // of packets, each way
	congestion string        // how TCP at both ends controls it
}

func (l link) validate() error {
	switch {
	case l.delay < 0:
		return errors.New("--delay: give 0 or more")
	case l.loss < 0 || l.loss >= 1:
		return errors.New("--loss: give a part of all packets, from 0 to below 1, such as 0.01")
	}
	return nil
}

func run(ctx context.Context) error {
	var l link
	var rounds int
	flag.DurationVar(&l.delay, "delay", 50*time.Millisecond, "delay of a packet, each way")
	flag.Float64Var(&l.loss, "loss", 0.01, "part of the packets that are lost, each way")
	// Reno is in every kernel, is permitted in every namespace, and suffers most from loss.
	flag.StringVar(&l.congestion, "congestion", "reno", "congestion control of TCP at both ends")
	flag.IntVar(&rounds, "rounds", 5, "number of measurements of each method")
	flag.Parse()
	if err := l.validate(); err != nil {
		return err
	}
	if rounds < 1 {
		return errors.New("--rounds: give 1 or more")
	}
	return bench(ctx, l, rounds)
}
