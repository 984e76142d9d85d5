package resync

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

const (
	// secondLook is when a finding is looked at again. What a report on its way, or an object that just changes, makes
	// look wrong is right by then.
	secondLook = 5 * time.Second
	// hopeless is how many instances in a row cannot be read when a round is given up.
	hopeless = 3
)

// round audits all instances once, spread over an interval, and then the watch.
func (a *Resyncer) round(ctx context.Context) {
	// ±10 %, so that a fleet does not come all at once.
	length := time.Duration(float64(a.config.Interval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // jitter is no secret
	start, ok, failed := time.Now(), true, 0
	var looks sync.WaitGroup
	defer looks.Wait()
	instances := a.cluster.Instances()
	for i, instance := range instances {
		if !sleep(ctx, time.Until(start.Add(length*time.Duration(i+1)/time.Duration(len(instances))))) {
			return
		}
		if failed == hopeless {
			continue
		}
		found, err := a.look(ctx, instance)
		if err != nil {
			a.log.V(1).Info("A workload cannot be audited", "instance", instance.String(), "error", err.Error())
			ok = false
			failed++
			continue
		}
		failed = 0
		if len(found) > 0 {
			looks.Go(func() { a.confirm(ctx, instance, found) })
		}
	}
	if !sleep(ctx, time.Until(start.Add(length))) {
		return
	}
	stalled, err := a.cluster.DetectStalls(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		a.log.V(1).Info("The watch cannot be audited", "error", err.Error())
		ok = false
	}
	a.metrics.repairs.WithLabelValues(watchKind).Add(float64(stalled))
	if ctx.Err() == nil {
		a.metrics.ended(ok)
	}
}

// confirm looks a second time, after a while.
func (a *Resyncer) confirm(ctx context.Context, instance target.Instance, before []finding) {
	if !sleep(ctx, secondLook) {
		return
	}
	if err := a.repairAgain(ctx, instance, before); err != nil {
		a.log.V(1).Info("A workload cannot be audited", "instance", instance.String(), "error", err.Error())
	}
}

// repairAgain repairs what was found before and is found again.
func (a *Resyncer) repairAgain(ctx context.Context, instance target.Instance, before []finding) error {
	found, err := a.look(ctx, instance)
	if err != nil {
		return err
	}
	for _, f := range found {
		if slices.ContainsFunc(before, f.same) {
			a.repair(f)
		}
	}
	return nil
}

// repair puts in a report whose row is wrong, unless something newer is on its way by now.
func (a *Resyncer) repair(f finding) {
	if f.unheard {
		a.outbox.Offer(f.report)
		if op, ok := f.report.(observe.Operation); ok && op.Deleted {
			a.outbox.Forget(op.Key()) // nothing more will come
		}
	} else if !a.outbox.Resend(f.report, f.receipt) {
		return
	}
	a.metrics.repairs.WithLabelValues(kindOf(f.report)).Inc()
	a.log.Info("The control plane has something else than the cluster: it is told again",
		"instance", f.report.Instance().String(), "report", f.report.String(), "differs", strings.Join(f.differs, ", "))
}
