package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// InitialSyncer reads what the control plane has of a workload, and tells the outbox ([outbox.Outbox.Seed]). Its errors are
// like those of a [Sender], or [ErrNotYet]. Attempt counts from 1.
type InitialSyncer interface {
	InitialSync(ctx context.Context, workload target.Instance, attempt int) error
}

// ErrNotYet says that a workload has to be seen whole before it can be adopted.
var ErrNotYet = errors.New("not all of the workload has been seen yet")

// notYet is how long it is waited for that at first.
const notYet = 200 * time.Millisecond

// Config sets how reports are delivered.
type Config struct {
	// Concurrency is the number of requests with reports that may be on their way at a time, 1 to 256.
	Concurrency int
	// ShutdownTimeout bounds the flush of what is pending when the agent stops.
	ShutdownTimeout time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Concurrency:     8,
		ShutdownTimeout: 25 * time.Second,
	}
}

// Validate names the field that is wrong and what it accepts.
func (c Config) Validate() error {
	switch {
	case c.Concurrency < 1 || c.Concurrency > 256:
		return fmt.Errorf("send concurrency is %d: give a number from 1 to 256", c.Concurrency)
	case c.ShutdownTimeout <= 0:
		return fmt.Errorf("shutdown timeout is %s: give a duration above 0, such as 25s", c.ShutdownTimeout)
	}
	return nil
}

// Notifier drains an outbox into a sender.
type Notifier struct {
	config  Config
	outbox  *outbox.Outbox
	sender  Sender
	adopter InitialSyncer
	metrics *Metrics
	log     logr.Logger

	mu      sync.Mutex
	failing bool // since a report failed, until none is left that did
}

// New returns a notifier that does nothing until it is run. The adopter is nil if the outbox does not adopt.
func New(
	config Config, box *outbox.Outbox, sender Sender, adopter InitialSyncer, metrics *Metrics, log logr.Logger,
) *Notifier {
	return &Notifier{config: config, outbox: box, sender: sender, adopter: adopter, metrics: metrics, log: log}
}

// ErrDeposed is the cause of a context with which [Notifier.Run] does not flush: another agent reports now.
var ErrLeadershipLost = errors.New("another agent reports now")

// ErrNotFlushed says that reports were left when the time for the flush was over.
var ErrNotFlushed = errors.New("not all reports were delivered")

// Run delivers until the context ends. Then it closes the outbox, flushes what is pending for at most the shutdown
// timeout, and returns [ErrNotFlushed] if something was left. If the context ended because of [ErrLeadershipLost], it ends at
// once, with what is on its way.
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
	if errors.Is(context.Cause(ctx), ErrLeadershipLost) {
		cancel()
		<-done
		return nil
	}
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
		return fmt.Errorf("flush: %w within %s, %d are left", ErrNotFlushed, n.config.ShutdownTimeout, left)
	}
	return nil
}

// deliver sends what is ready until nothing more can come. It waits for nothing to gather: while a request is on its way,
// what comes up meanwhile gathers by itself.
func (n *Notifier) deliver(ctx context.Context) {
	for {
		items, err := n.outbox.NextBatch(ctx, n.sender.MaxBatch())
		if err != nil {
			return
		}
		if adoption, ok := items[0].Report.(outbox.InitialSync); ok { // it comes alone
			n.settle(ctx, items[0], Result{Err: n.adopter.InitialSync(ctx, adoption.Workload, items[0].Attempt)})
			continue
		}
		for i, result := range n.sender.Send(ctx, items) {
			n.settle(ctx, items[i], result)
		}
	}
}

// settle tells the outbox what became of an item. The mutex keeps that and the log in step.
func (n *Notifier) settle(ctx context.Context, item outbox.Item, result Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := result.Err
	if ctx.Err() != nil && err != nil {
		n.outbox.Nack(item, outbox.Failure{Cause: err}) // it was cut off; what is left is counted in Run
		return
	}
	switch {
	case errors.Is(err, ErrNotYet):
		n.outbox.Defer(item, notYet)
		return
	case errors.Is(err, ErrProtocolChanged):
		n.outbox.Requeue(item)
		return
	}
	switch kind := threeport.KindOf(err); kind {
	case threeport.KindNone:
		n.outbox.Ack(item, result.Receipt)
		n.metrics.accepted(item)
	case threeport.KindNotFound:
		n.outbox.AckNotFound(item)
		n.metrics.count(item, resultGone)
		n.tell("The control plane has no such row any more; the report is dropped", item, err)
	case threeport.KindPermanent:
		n.outbox.Reject(item, err)
		n.metrics.count(item, resultRejected)
		n.tell("The control plane refused a report for good", item, err)
	case threeport.KindRetryable, threeport.KindUnauthorized:
		n.fail(item, err, kind)
		return
	}
	if n.failing && n.outbox.Failing() == 0 {
		n.failing = false
		n.log.Info("Delivery recovered")
	}
}

// fail puts an item back.
func (n *Notifier) fail(item outbox.Item, err error, kind threeport.Kind) {
	refused := kind == threeport.KindUnauthorized
	n.outbox.Nack(item, outbox.Failure{Cause: err, RetryAfter: threeport.RetryAfter(err), General: refused})
	n.metrics.count(item, resultRetried)
	if n.failing {
		return
	}
	n.failing = true
	if refused {
		n.tell("The control plane refuses the agent's credentials; they are read again, and reports are kept", item, err)
	} else {
		n.tell("Delivery fails; reports are kept and sent again", item, err)
	}
}

func (n *Notifier) tell(what string, item outbox.Item, err error) {
	n.log.Info(what, "report", item.Report.String(), "instance", item.Report.Instance().String(), "error", err.Error())
}
