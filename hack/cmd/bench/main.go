// Command bench measures memory, CPU time and delays of the agent at several sizes of a cluster, and prints a table for each size.
// Each figure is beside its floor in the same run: bare informers, a bare loop of posts, or a bare watch that posts. docs/measurements.md has the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	agent      string   // a binary; empty to build it from the source
	env        []string // of the agent, such as GOGC=50
	sizes      []size
	rates      []int // Events per second
	slice      time.Duration
	protocols  []string
	keepOutput string // folder for the output of the agent; empty for none
}

// size is the number of Pods of a cluster.
type size struct{ tracked, untracked int }

func (s size) String() string { return fmt.Sprintf("%d:%d", s.tracked, s.untracked) }

// The protocols of delivery.
const (
	protocolV0   = "v0"
	protocolSets = "sets"
)

func parseOptions(args []string) (options, error) {
	var o options
	var env, sizes, rates, protocols string
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.StringVar(&o.agent, "agent", "", "binary of the agent to measure, such as that of an earlier version; empty builds it from the source")
	flags.StringVar(&env, "env", "", "environment variables of the agent, such as GOMEMLIMIT=230MiB,GOGC=50")
	flags.StringVar(&sizes, "sizes", "500:0,10000:0,10000:10000", "sizes of the cluster: TRACKED:UNTRACKED Pods, such as 50000:100000")
	flags.StringVar(&rates, "rates", "10,100,1000", "rates of Events, per second")
	flags.StringVar(&protocols, "protocols", "v0,sets", "ways of delivery: v0, sets or both")
	flags.DurationVar(&o.slice, "slice", 20*time.Second, "how long each rate lasts")
	flags.StringVar(&o.keepOutput, "output", "", "folder for the output of the agent; empty discards it")
	_ = flags.Parse(args) // it exits on an error
	if env != "" {
		o.env = strings.Split(env, ",")
	}
	for text := range strings.SplitSeq(sizes, ",") {
		tracked, untracked, _ := strings.Cut(text, ":")
		var s size
		var err, err2 error
		s.tracked, err = strconv.Atoi(tracked)
		if untracked != "" {
			s.untracked, err2 = strconv.Atoi(untracked)
		}
		if err != nil || err2 != nil || s.tracked < podsPerWorkload || s.untracked < 0 {
			return o, fmt.Errorf("--sizes: %q: give TRACKED:UNTRACKED, with at least %d tracked Pods", text, podsPerWorkload)
		}
		o.sizes = append(o.sizes, s)
	}
	for text := range strings.SplitSeq(rates, ",") {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 {
			return o, fmt.Errorf("--rates: %q: give Events per second, such as 10,100", text)
		}
		o.rates = append(o.rates, rate)
	}
	for text := range strings.SplitSeq(protocols, ",") {
		if text != protocolV0 && text != protocolSets {
			return o, fmt.Errorf("--protocols: %q: give %s, %s or both", text, protocolV0, protocolSets)
		}
		o.protocols = append(o.protocols, text)
	}
	if o.slice < time.Second {
		return o, errors.New("--slice: give 1s or more")
	}
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	var err error
	switch args := os.Args[1:]; {
	case len(args) > 0 && args[0] == informersCommand:
		err = runInformers(ctx, args[1:])
	case len(args) > 0 && args[0] == postsCommand:
		err = runPosts(ctx, args[1:])
	case len(args) > 0 && args[0] == forwardCommand:
		err = runForward(ctx, args[1:])
	default:
		var o options
		if o, err = parseOptions(args); err == nil {
			err = run(ctx, o)
		}
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
