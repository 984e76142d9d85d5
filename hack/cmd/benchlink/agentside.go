//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/agent/journal"
	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// agentCommand makes this program run the agent's side: it delivers Events with one method, and prints the duration.
const agentCommand = "agent"

// The methods of delivery.
const (
	methodSets       = "sets"   // the agent with --report-sets
	methodV0         = "v0"     // the agent without
	methodSequential = "serial" // one client, one connection, one post after the other
)

// delivery is the result of one run of the agent's side.
type delivery struct {
	Events  int
	Seconds float64
	// Rows is the number of their rows afterwards.
	Rows int64
}

func (d delivery) rate() float64 { return float64(d.Events) / d.Seconds }

func runAgentSide(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(agentCommand, flag.ContinueOnError)
	method := flags.String("method", methodSets, "method of delivery")
	url := flags.String("url", "", "of the control plane")
	events := flags.Int("events", 0, "how many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config := threeport.DefaultConfig()
	config.Server, config.AuthEnabled = *url, false
	client, err := threeport.New(config)
	if err != nil {
		return err
	}
	defer client.Close()
	instance, err := createInstance(ctx, *url, "over-the-link")
	if err != nil {
		return err
	}
	took, err := deliver(ctx, client, *method, makeEvents(instance, *events))
	if err != nil {
		return err
	}
	rows, err := countRows(ctx, *url, instance)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(delivery{Events: *events, Seconds: took.Seconds(), Rows: rows})
}

// deliver sends Events with one method, and returns the time until the control plane has accepted all.
func deliver(ctx context.Context, client *threeport.Client, method string, events []observe.Event) (time.Duration, error) {
	switch method {
	case methodSequential:
		return sendSequentially(ctx, client, events)
	case methodV0:
		return sendThroughOutbox(ctx, func(*outbox.Outbox) notify.Sender { return notify.OneByOne(notify.NewV0Sender(client)) }, events)
	case methodSets:
		info := notify.AgentInfo{ClusterName: "bench", Version: "benchlink", ClusterUID: func(context.Context) (string, error) {
			return string(events[0].UID), nil // each run has its own cluster, because it has its own workload
		}}
		return sendThroughOutbox(ctx, func(box *outbox.Outbox) notify.Sender {
			return notify.NewNegotiatingSender(client, box, info, prometheus.NewRegistry(), logr.Discard())
		}, events)
	}
	return 0, fmt.Errorf("--method is %q: give %s, %s or %s", method, methodSets, methodV0, methodSequential)
}

// sendSequentially posts Events one after the other.
func sendSequentially(ctx context.Context, client *threeport.Client, events []observe.Event) (time.Duration, error) {
	begin := time.Now()
	for _, ev := range events {
		if _, _, err := client.CreateWorkloadEvent(ctx, notify.EventRow(ev)); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// sendThroughOutbox offers all Events at once to the agent's delivery: outbox, journal, notifier and sender.
func sendThroughOutbox(
	ctx context.Context, newSender func(*outbox.Outbox) notify.Sender, events []observe.Event,
) (took time.Duration, err error) {
	dir, err := os.MkdirTemp("", "benchlink-state-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	state, err := journal.Open(filepath.Join(dir, "state"), logr.Discard())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	config := outbox.DefaultConfig()
	config.Protocol = notify.ProtocolV0
	box := outbox.New(config, state)
	sender := newSender(box)
	notifier := notify.New(notify.DefaultConfig(), box, sender, nil, notify.NewMetrics(prometheus.NewRegistry(), box), logr.Discard())

	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	begin := time.Now()
	for _, ev := range events {
		box.Offer(ev)
	}
	if negotiation, ok := sender.(*notify.NegotiatingSender); ok {
		group.Go(func() error { negotiation.Run(runCtx); return nil })
	}
	group.Go(func() error { return notifier.Run(runCtx) })
	err = untilDelivered(ctx, box)
	took = time.Since(begin)
	stop()
	return took, errors.Join(err, group.Wait())
}

// untilDelivered waits until nothing is pending.
func untilDelivered(ctx context.Context, box *outbox.Outbox) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for box.Pending() > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if n := box.DeadLetters(); n > 0 {
		return fmt.Errorf("the control plane rejected %d Events", n)
	}
	return nil
}
