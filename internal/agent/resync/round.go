package resync

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// recheckAfter is the wait before a drift is rechecked. A report that is under way arrives meanwhile.
	recheckAfter = 5 * time.Second
	// maxFailures is the number of instances in a row that cannot be read after which the rest of a round is skipped.
	maxFailures = 3
)

// round compares all instances once, spread over an interval, and then the informers' caches.
func (r *Resyncer) round(ctx context.Context, interval time.Duration) {
	// ±10 %, to spread the requests of a fleet
	length := time.Duration(float64(interval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // jitter is no secret
	start, ok, failed := time.Now(), true, 0
	var rechecks sync.WaitGroup
	defer rechecks.Wait()
	instances := r.cluster.Instances()
	for i, instance := range instances {
		if !sleep(ctx, time.Until(start.Add(length*time.Duration(i+1)/time.Duration(len(instances))))) {
			return
		}
		if failed == maxFailures {
			continue
		}
		found, err := r.diff(ctx, instance)
		if err != nil {
			r.log.V(1).Info("Comparing a workload failed", "instance", instance.String(), "error", err.Error())
			if threeport.KindOf(err) != threeport.KindForbidden { // which concerns this instance only
				ok = false
				failed++
			}
			continue
		}
		failed = 0
		if len(found) > 0 {
			rechecks.Go(func() { r.recheck(ctx, instance, found) })
		}
	}
	if !sleep(ctx, time.Until(start.Add(length))) {
		return
	}
	stalled, err := r.cluster.DetectStalls(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		r.log.V(1).Info("Comparing the informers' caches failed", "error", err.Error())
		ok = false
	}
	r.metrics.repairs.WithLabelValues(watchKind).Add(float64(stalled))
	if ctx.Err() == nil {
		r.metrics.ended(ok)
	}
}

// recheck repairs the drifts that are still there after a while.
func (r *Resyncer) recheck(ctx context.Context, instance target.Instance, before []drift) {
	if !sleep(ctx, recheckAfter) {
		return
	}
	if err := r.repairAgain(ctx, instance, before); err != nil {
		r.log.V(1).Info("Comparing a workload failed", "instance", instance.String(), "error", err.Error())
	}
}

// repairAgain repairs the drifts that were found before and are found again.
func (r *Resyncer) repairAgain(ctx context.Context, instance target.Instance, before []drift) error {
	found, err := r.diff(ctx, instance)
	if err != nil {
		return err
	}
	for _, f := range found {
		if slices.ContainsFunc(before, f.same) {
			r.repair(f)
		}
	}
	return nil
}

// repair offers the report of a drift, unless a newer one is pending.
func (r *Resyncer) repair(f drift) {
	if f.neverReported {
		r.outbox.Offer(f.report)
	} else if !r.outbox.Resend(f.report, f.receipt) {
		return
	}
	r.metrics.repairs.WithLabelValues(notify.ReportKind(f.report)).Inc()
	r.log.Info("A row of the control plane differs from the cluster. It is repaired.",
		"instance", f.report.Instance().String(), "report", f.report.String(), "differs", strings.Join(f.fields, ", "))
}
