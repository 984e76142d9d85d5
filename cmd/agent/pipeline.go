package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/threeport/threeport-agent/internal/agent/credential"
	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/leader"
	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/reporter"
	"github.com/threeport/threeport-agent/internal/agent/resync"
	"github.com/threeport/threeport-agent/internal/health/rules"
	"github.com/threeport/threeport-agent/internal/redact"
)

// pipeline has the stages with goroutines of their own, except for the reconciler, which the manager runs.
type pipeline struct {
	leaderElect bool
	reporter    *reporter.Reporter
	ownRules    *rules.Live               // nil without --health-rules
	redaction   *redact.Live              // nil without --redaction-rules
	filters     *filter.Live              // nil without --event-filters
	resyncer    *resync.Resyncer          // nil if reports are printed
	negotiation *notify.NegotiatingSender // nil with one protocol only
	notifier    *notify.Notifier
	heartbeat   *leader.Heartbeat   // nil without a namespace for its Lease
	renewer     *credential.Renewer // nil without --token-secret
}

// runUnder runs the manager, and the pipeline while this replica leads, until the context ends. It returns the errors of
// both: the manager only logs an error that the pipeline returns after the context has ended.
func (p pipeline) runUnder(ctx context.Context, mgr manager.Manager) error {
	flushed := make(chan error, 1)
	err := mgr.Add(manager.RunnableFunc(func(leading context.Context) error {
		err := p.run(leading, ctx)
		if leading.Err() == nil {
			return err
		}
		flushed <- err
		return nil
	}))
	if err != nil {
		return fmt.Errorf("set up the pipeline: %w", err)
	}
	err = mgr.Start(ctx)
	select {
	case flushErr := <-flushed:
		return errors.Join(err, flushErr)
	default:
		return err
	}
}

// run runs the pipeline until the context leading ends. SIGTERM ends both contexts (see main). The manager waits for the shutdown timeout
// and stopMargin. The order of the end matters:
//
//  1. The informers end. The reporter offers the changes in its queues, and ends. The other stages of observe end too.
//  2. The notifier flushes what is in the outbox, and ends.
//
// If leading ends but untilStopped does not, this replica has lost the lease, or another part of the manager has failed. With an
// election, the notifier then ends at once, because another replica may send already. Otherwise it flushes.
func (p pipeline) run(leading, untilStopped context.Context) error {
	return p.deliverBeside(leading, untilStopped, p.observe)
}

// deliverBeside runs the notifier beside the stages that offer reports. They end with the context leading.
func (p pipeline) deliverBeside(leading, untilStopped context.Context, observe func(leading context.Context)) error {
	delivery, stop := context.WithCancelCause(context.WithoutCancel(leading))
	defer stop(nil)
	mayHaveLostLease := func() bool { return p.leaderElect && leading.Err() != nil && untilStopped.Err() == nil }
	defer context.AfterFunc(leading, func() {
		if mayHaveLostLease() {
			stop(notify.ErrLeadershipLost)
		}
	})()
	delivered := make(chan error, 1)
	go func() { delivered <- p.notifier.Run(delivery) }()
	observe(leading)
	if mayHaveLostLease() { // the function above may not have run yet
		stop(notify.ErrLeadershipLost)
	}
	stop(nil)
	return <-delivered
}

// observe runs the stages that offer reports, and those beside them, until the context ends.
func (p pipeline) observe(leading context.Context) {
	var others sync.WaitGroup
	others.Go(func() { p.reporter.Run(leading) })
	if p.negotiation != nil {
		others.Go(func() { p.negotiation.Run(leading) })
	}
	if p.resyncer != nil {
		others.Go(func() { p.resyncer.Run(leading) })
	}
	if p.ownRules != nil {
		others.Go(func() { p.ownRules.Run(leading, p.reporter.ReassessAll) })
	}
	if p.redaction != nil {
		others.Go(func() { p.redaction.Run(leading, p.reporter.RedactionChanged) })
	}
	if p.filters != nil {
		others.Go(func() { p.filters.Run(leading, p.reporter.FiltersChanged) })
	}
	if p.heartbeat != nil {
		others.Go(func() { p.heartbeat.Run(leading) })
	}
	if p.renewer != nil {
		others.Go(func() { p.renewer.Run(leading) })
	}
	others.Wait()
}
