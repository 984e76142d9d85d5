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
)

// InitialSyncer reads the remote state of an instance and passes it to the outbox ([outbox.Outbox.Seed]). Its errors are
// like those of a [Sender], or [ErrNotReady], or [ErrIncomplete]. Attempt counts from 1.
type InitialSyncer interface {
	InitialSync(ctx context.Context, instance target.Instance, attempt int) error
}

// ErrNotReady is the error of a report that the agent cannot send yet, because it could not read the objects. The error that wraps it has
// the cause. Users see both, and kubectl threeport doctor knows the text.
var ErrNotReady = errors.New("not ready")

// ErrIncomplete is the error of an initial sync that has read a part of the rows. It goes on in the next turn of the instance.
var ErrIncomplete = errors.New("not all rows of the workload have been read yet")

// deferDelay is the first wait after [ErrNotReady].
const deferDelay = 200 * time.Millisecond

// Config sets how reports are delivered.
type Config struct {
	// Concurrency is the number of concurrent requests with reports, 1 to 256.
	Concurrency int
	// ShutdownTimeout bounds the flush when the agent stops.
	ShutdownTimeout time.Duration
	// Durable is true if pending reports outlive the process, so that an incomplete flush is no error.
	Durable bool
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Concurrency:     8,
		ShutdownTimeout: 25 * time.Second,
	}
}

// Validate returns an error that names the wrong field and the accepted values.
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
	syncer  InitialSyncer
	metrics *Metrics
	log     logr.Logger

	mu      sync.Mutex
	failing bool // true from the first failure until no pending report has failed
	refused bool // true while failing, from the first refusal of the credentials

	workers     workers
	concurrency chan int // a changed number of workers; capacity 1
}

// New returns a notifier that does nothing until it is run. The syncer is nil if the outbox has no initial sync.
func New(
	config Config, box *outbox.Outbox, sender Sender, syncer InitialSyncer, metrics *Metrics, log logr.Logger,
) *Notifier {
	return &Notifier{
		config: config, outbox: box, sender: sender, syncer: syncer, metrics: metrics, log: log, concurrency: make(chan int, 1),
	}
}

// ErrLeadershipLost is the cause of a context with which [Notifier.Run] does not flush, because another replica leads.
var ErrLeadershipLost = errors.New("the leadership was lost to another replica")

// ErrNotFlushed says that reports were still pending at the end of the flush.
var ErrNotFlushed = errors.New("not all reports were delivered")

// Run delivers until the context ends. Then it closes the outbox and delivers pending reports for at most the shutdown
// timeout. It does not wait for reports that the control plane refuses. If some remain, it returns [ErrNotFlushed], unless they are
// durable. If the cause of the context's end is [ErrLeadershipLost], it cancels the requests and returns at once. All goroutines have
// ended when it returns.
func (n *Notifier) Run(ctx context.Context) error {
	flush, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var running sync.WaitGroup
	resize := func(wanted int) {
		n.workers.setWanted(wanted)
		for n.workers.join() {
			running.Go(func() { n.deliver(flush) })
		}
	}
	for resize(n.config.Concurrency); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case wanted := <-n.concurrency:
			resize(wanted)
		}
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
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
	left := n.outbox.Pending()
	switch {
	case left > 0 && n.config.Durable:
		n.log.Info("Unsent reports remain; they are in --state-dir or are recovered at the next start.", "pending", left)
	case left > 0:
		return fmt.Errorf("flush: %w, %d are left", ErrNotFlushed, left)
	}
	return nil
}

// SetConcurrency changes the number of concurrent requests while [Notifier.Run] delivers. A worker that is too many leaves after its next
// request.
func (n *Notifier) SetConcurrency(concurrency int) {
	for {
		select {
		case n.concurrency <- concurrency:
			return
		case <-n.concurrency: // an earlier change that Run has not seen
		}
	}
}

// deliver sends reports until the outbox is closed and empty, the context ends, or there are too many workers. It does not wait for
// batches to fill: while a request is under way, reports gather in the outbox.
func (n *Notifier) deliver(ctx context.Context) {
	for !n.workers.leave() {
		items, err := n.outbox.NextBatch(ctx, n.sender.MaxBatch())
		if err != nil {
			return
		}
		if initial, ok := items[0].Report.(outbox.InitialSync); ok { // the only item of its batch
			n.settle(ctx, items[0], Result{Err: n.syncer.InitialSync(ctx, initial.Workload, items[0].Attempt)})
			continue
		}
		for i, result := range n.sender.Send(ctx, items) {
			n.settle(ctx, items[i], result)
		}
	}
}
