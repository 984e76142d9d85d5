package resync

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// A few rows that cannot be read, while others can, do not hold up a workload for ever.
const (
	maxUnreadable = 3 // rows
	maxAttempts   = 3 // to read them
)

// stateTimeout bounds the reading of an instance's objects from the API server. A sender waits for it.
const stateTimeout = 5 * time.Second

// InitialSync reads the remote state of an instance and passes it to the outbox. Attempt counts from 1. It returns
// [notify.ErrNotObserved] while not all of the instance has been listed, and otherwise the errors of the control plane.
func (r *Resyncer) InitialSync(ctx context.Context, instance target.Instance, attempt int) error {
	desired, err := r.stateOf(ctx, instance)
	if err != nil {
		return err
	}
	found, err := r.readAll(ctx, instance, desired)
	if err == nil && attempt < maxAttempts {
		err = errors.Join(found.unread...)
	}
	r.mu.Lock()
	if err != nil {
		kept := desired
		kept.Events = nil // there may be thousands, and the outbox has those that are pending
		r.lastState[instance] = kept
	} else {
		delete(r.lastState, instance)
	}
	r.mu.Unlock()
	if err == nil {
		found.apply(desired)
	}
	return err
}

// stateOf returns what the cluster has of an instance. When the agent stops, the informers end before the last reports
// are delivered. Then it returns the state of the last attempt.
func (r *Resyncer) stateOf(ctx context.Context, instance target.Instance) (observe.DesiredState, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	desired, complete, err := r.desiredState(ctx, instance)
	switch {
	case err != nil:
		r.log.V(1).Info("Reading the objects of a workload failed", "instance", instance.String(), "error", err.Error())
	case complete:
		return desired, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.lastState[instance]; ok && r.ended {
		return before, nil
	}
	return observe.DesiredState{}, notify.ErrNotObserved
}

// remoteState is what the control plane has of an instance.
type remoteState struct {
	resyncer *Resyncer
	instance target.Instance
	known    []outbox.Known
	missed   []observe.Operation
	drifts   []drift // rows that differ from the cluster, whatever the outbox believes
	unread   []error // of a few rows that could not be read
}

// readAll reads the rows of an instance. If the control plane always refuses to return them, they are skipped: each
// Event then looks for its row when it is sent.
func (r *Resyncer) readAll(ctx context.Context, instance target.Instance, desired observe.DesiredState) (*remoteState, error) {
	known, err := r.knownEvents(ctx, instance, desired.Events)
	if err != nil && !r.isPermanent(instance, err) {
		return nil, err
	}
	s := &remoteState{resyncer: r, instance: instance, known: known}
	if err := visitRows(ctx, desired, s); err != nil {
		return nil, err
	}
	return s, s.status(ctx, desired.Status)
}

// apply passes the remote state to the outbox.
func (s *remoteState) apply(desired observe.DesiredState) {
	box, log := s.resyncer.outbox, s.resyncer.log.WithValues("instance", s.instance.String())
	if len(s.unread) > 0 {
		log.Info("The initial sync skips rows that cannot be read",
			"rows", len(s.unread), "error", s.unread[0].Error())
	}
	box.Seed(s.instance, s.known, s.missed, desired.Events)
	for _, d := range s.drifts { // no effect unless the store says that the report was accepted
		box.Resend(d.report, d.receipt)
	}
	log.V(1).Info("The initial sync is done", "known", len(s.known), "missedDeletions", len(s.missed))
}

// existing implements [rowVisitor]. If the row has no object, or a deleted one, the object will be ADDED. If the row has an
// object with another UID, that is deleted first.
func (s *remoteState) existing(ctx context.Context, op observe.Operation, row resourceRow) error {
	k := outbox.Known{Key: op.Key(), OrderingKey: op.OrderingKey(), Receipt: row.receipt(op.Object)}
	if changes, err := row.changes(ctx, op); err == nil && len(changes) == 0 {
		k.Version, k.Modified = op.Version(), row.modified()
	} else {
		s.drifts = append(s.drifts, drift{report: op, receipt: k.Receipt})
	}
	switch {
	case k.Receipt.Accepted:
		s.known = append(s.known, k)
	case row.exists && row.uid != "": // without a UID it may be the same object
		s.missed = append(s.missed, row.deletion(op.Attribution, op.Object.Ref))
	}
	return nil
}

// status reads whether the control plane has another status.
func (s *remoteState) status(ctx context.Context, verdict observe.Status) error {
	if verdict.Status == "" {
		return nil
	}
	differs, err := s.resyncer.statusDiffers(ctx, s.instance, verdict)
	if differs {
		s.drifts = append(s.drifts, drift{report: verdict, receipt: outbox.Receipt{Accepted: true}})
	}
	if err != nil && s.resyncer.isPermanent(s.instance, err) {
		return nil
	}
	return err
}

// absent implements [rowVisitor]: the control plane may have missed the deletion of the object.
func (s *remoteState) absent(attribution target.Attribution, row resourceRow) {
	switch op := row.deletion(attribution, attribution.Resource.Ref); {
	case row.exists:
		s.missed = append(s.missed, op)
	case row.LastOperation != nil && *row.LastOperation == threeport.OperationDeleted:
		s.known = append(s.known, outbox.Known{Deletion: &op})
	}
}

// read implements [rowVisitor]. A few unreadable rows count as missing.
func (s *remoteState) read(ctx context.Context, id int64) (row resourceRow, found bool, err error) {
	row, found, err = s.resyncer.readResource(ctx, id)
	switch {
	case err == nil:
		return row, found, nil
	case s.resyncer.isPermanent(s.instance, err):
		return resourceRow{}, false, nil
	case ctx.Err() != nil, isGeneral(err):
		return resourceRow{}, false, err
	}
	if s.unread = append(s.unread, err); len(s.unread) > maxUnreadable {
		return resourceRow{}, false, err
	}
	return resourceRow{}, false, nil
}

// isPermanent reports whether the control plane would return the same error again.
func (r *Resyncer) isPermanent(instance target.Instance, err error) bool {
	switch threeport.KindOf(err) {
	case threeport.KindPermanent, threeport.KindNotFound:
	case threeport.KindNone, threeport.KindRetryable, threeport.KindUnauthorized, threeport.KindForbidden, threeport.KindQuotaExceeded:
		return false
	}
	r.log.Info("The control plane refuses to return rows of a workload", "instance", instance.String(), "error", err.Error())
	return true
}

// knownEvents returns the remote state of an instance's Events, and of other Events that the outbox knows.
func (r *Resyncer) knownEvents(ctx context.Context, instance target.Instance, events []observe.Event) ([]outbox.Known, error) {
	byUID := make(map[types.UID]observe.Event, len(events))
	for _, ev := range events {
		byUID[ev.UID] = ev
	}
	rows, err := r.readEvents(ctx, instance, events, func(uid types.UID) bool {
		_, listed := byUID[uid]
		return listed || r.outbox.State(observe.Event{UID: uid}).Phase != outbox.Unknown
	})
	if err != nil {
		return nil, err
	}
	known := make([]outbox.Known, 0, len(rows))
	for uid := range rows {
		row, _ := rows.oldest(uid)
		k := outbox.Known{
			Key:     observe.EventKey(uid),
			Receipt: outbox.Receipt{Accepted: true, RowID: *row.ID, Instance: instance},
		}
		if ev, ok := byUID[uid]; ok && len(notify.EventChanges(ev, k.Receipt, row)) == 0 {
			k.Version = ev.Version()
		}
		known = append(known, k)
	}
	return known, nil
}

// isGeneral reports whether the control plane would now refuse all other rows of the instance too.
func isGeneral(err error) bool {
	kind := threeport.KindOf(err)
	return kind == threeport.KindUnauthorized || kind == threeport.KindForbidden || threeport.RetryAfter(err) > 0
}
