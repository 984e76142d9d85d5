package notify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/controlplane"
	"github.com/threeport/threeport-agent/internal/outbox"
)

// Sender delivers one report. Its errors are those of package controlplane, which tells what to do about
// them; of any other error nothing is known against the report, and it is sent again.
type Sender interface {
	Send(ctx context.Context, item outbox.Item) (outbox.Receipt, error)
}

// Config sets how reports are delivered.
type Config struct {
	// Concurrency is the number of reports that may be on their way at a time, 1 to 256.
	Concurrency int
	// ShutdownTimeout bounds the flush of what is pending when the agent stops.
	ShutdownTimeout time.Duration
	// Backoff bounds the wait before a report is sent again: a random time up to Base, which doubles with
	// each try, up to Max.
	Backoff Backoff
}

// Backoff is exponential with full jitter, so that a fleet which lost its control plane does not come back
// all at once.
type Backoff struct{ Base, Max time.Duration }

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Concurrency:     8,
		ShutdownTimeout: 25 * time.Second,
		Backoff:         Backoff{Base: 500 * time.Millisecond, Max: 20 * time.Second},
	}
}

// Validate names the field that is wrong and what it accepts.
func (c Config) Validate() error {
	switch {
	case c.Concurrency < 1 || c.Concurrency > 256:
		return fmt.Errorf("send concurrency is %d: give a number from 1 to 256", c.Concurrency)
	case c.ShutdownTimeout <= 0:
		return fmt.Errorf("shutdown timeout is %s: give a duration above 0, such as 25s", c.ShutdownTimeout)
	case c.Backoff.Base <= 0 || c.Backoff.Max < c.Backoff.Base:
		return fmt.Errorf("backoff is %s to %s: give two durations above 0, the larger last", c.Backoff.Base, c.Backoff.Max)
	}
	return nil
}

// delay returns how long to wait after the given number of failed tries.
func (b Backoff) delay(attempt int) time.Duration {
	limit := b.Max
	if doublings := max(attempt-1, 0); b.Base <= b.Max>>min(doublings, 62) {
		limit = b.Base << doublings
	}
	return rand.N(limit) + 1 //nolint:gosec // jitter is no secret
}

// Notifier drains an outbox into a sender.
type Notifier struct {
	config  Config
	outbox  *outbox.Outbox
	sender  Sender
	metrics *Metrics
	log     logr.Logger

	mu      sync.Mutex
	failing bool // since a report failed, until none is left that did
}

// New returns a notifier that does nothing until it is run.
func New(config Config, box *outbox.Outbox, sender Sender, metrics *Metrics, log logr.Logger) *Notifier {
	return &Notifier{config: config, outbox: box, sender: sender, metrics: metrics, log: log}
}

// Run delivers until the context ends. Then it closes the outbox, flushes what is pending for at most the
// shutdown timeout, and returns an error if something was left.
func (n *Notifier) Run(ctx context.Context) error {
	flush, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers sync.WaitGroup
	for range n.config.Concurrency {
		workers.Go(func() { n.deliver(flush) })
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()

	<-ctx.Done()
	n.outbox.Close()
	deadline := time.NewTimer(n.config.ShutdownTimeout)
	defer deadline.Stop()
	select {
	case <-done:
	case <-deadline.C:
		cancel()
		<-done
	}
	if left := n.outbox.Pending(); left > 0 {
		return fmt.Errorf("flush: %d reports were not delivered within %s", left, n.config.ShutdownTimeout)
	}
	return nil
}

// deliver sends one report after the other until nothing more can come.
func (n *Notifier) deliver(ctx context.Context) {
	for {
		item, err := n.outbox.Next(ctx)
		if err != nil {
			return
		}
		receipt, err := n.sender.Send(ctx, item)
		n.settle(ctx, item, receipt, err)
	}
}

// settle tells the outbox what became of an item. The mutex keeps that and the log in step.
func (n *Notifier) settle(ctx context.Context, item outbox.Item, receipt outbox.Receipt, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kind := controlplane.KindOf(err)
	switch {
	case err == nil:
		n.outbox.Accept(item, receipt)
		n.metrics.accepted(item)
	case ctx.Err() != nil:
		n.outbox.Retry(item, 0, err) // the time for the flush is over; what is left is counted in Run
		return
	case kind == controlplane.KindPermanent || kind == controlplane.KindNotFound:
		n.outbox.Reject(item, err)
		n.metrics.rejected(item)
		n.log.Info("The control plane refused a report for good", "report", item.Report.String(),
			"instance", item.Report.Instance().String(), "error", err.Error())
	default:
		delay := controlplane.RetryAfter(err)
		if delay <= 0 {
			delay = n.config.Backoff.delay(item.Attempt)
		}
		n.outbox.Retry(item, delay, err)
		n.metrics.retried(item)
		if !n.failing {
			n.failing = true
			n.log.Info("Delivery fails; reports are kept and sent again", "report", item.Report.String(),
				"instance", item.Report.Instance().String(), "error", err.Error())
		}
		return
	}
	if n.failing && n.outbox.Failing() == 0 {
		n.failing = false
		n.log.Info("Delivery recovered")
	}
}
