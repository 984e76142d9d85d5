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
		r.lastState[instance] = desired
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

// readAll reads the rows of an instance. If the control plane permanently refuses to return them, they are skipped: each
// Event then looks for its row when it is sent.
func (r *Resyncer) readAll(ctx context.Context, instance target.Instance, desired observe.DesiredState) (*remoteState, error) {
	known, err := r.knownEvents(ctx, instance, desired.Events)
	if err != nil && !r.refused(instance, err) {
		return nil, err
	}
	l := &remoteState{resyncer: r, instance: instance, known: known}
	for _, op := range desired.Operations {
		if err := l.operation(ctx, op); err != nil {
			return nil, err
		}
	}
	for _, attribution := range desired.Absent {
		if err := l.absent(ctx, attribution); err != nil {
			return nil, err
		}
	}
	return l, l.status(ctx, desired.Status)
}

// apply passes the remote state to the outbox.
func (l *remoteState) apply(desired observe.DesiredState) {
	box, log := l.resyncer.outbox, l.resyncer.log.WithValues("instance", l.instance.String())
	if len(l.unread) > 0 {
		log.Info("The initial sync skips rows that cannot be read",
			"rows", len(l.unread), "error", l.unread[0].Error())
	}
	box.Seed(l.instance, l.known, l.missed, desired.Events)
	for _, f := range l.drifts { // no effect unless the store says that the report was accepted
		box.Resend(f.report, f.receipt)
	}
	log.V(1).Info("The initial sync is done", "known", len(l.known), "missedDeletions", len(l.missed))
}

// operation reads the row of an existing object. If the row has no object, or a deleted one, the object will be ADDED. If the
// row has an object with another UID, that is deleted first.
func (l *remoteState) operation(ctx context.Context, op observe.Operation) error {
	row, found, err := l.read(ctx, op.Attribution.Resource.ID)
	if err != nil || !found {
		return err
	}
	k := outbox.Known{Key: op.Key(), OrderingKey: op.OrderingKey(), Receipt: outbox.Receipt{Accepted: row.exists && row.uid == op.Object.UID}}
	if changes, err := row.changes(op); err == nil && len(changes) == 0 {
		k.Version, k.Modified = op.Version(), row.modified()
	} else {
		l.drifts = append(l.drifts, drift{report: op, receipt: k.Receipt})
	}
	switch {
	case !row.exists:
	case row.uid == op.Object.UID:
		l.known = append(l.known, k)
	case row.uid != "": // without a UID it may be the same object
		l.missed = append(l.missed, row.deletion(op.Attribution, op.Object.Ref))
	}
	return nil
}

// status reads whether the control plane has another status.
func (l *remoteState) status(ctx context.Context, verdict observe.Status) error {
	if verdict.Status == "" {
		return nil
	}
	has, err := l.resyncer.readStatus(ctx, l.instance)
	if err == nil && (has == nil || *has != verdict.Status) {
		l.drifts = append(l.drifts, drift{report: verdict, receipt: outbox.Receipt{Accepted: true}})
	}
	if err != nil && l.resyncer.refused(l.instance, err) {
		return nil
	}
	return err
}

// absent reads whether the control plane has missed the deletion of an object.
func (l *remoteState) absent(ctx context.Context, attribution target.Attribution) error {
	row, found, err := l.read(ctx, attribution.Resource.ID)
	if err != nil || !found {
		return err
	}
	switch op := row.deletion(attribution, attribution.Resource.Ref); {
	case row.exists:
		l.missed = append(l.missed, op)
	case row.LastOperation != nil && *row.LastOperation == threeport.OperationDeleted:
		l.known = append(l.known, outbox.Known{Deletion: &op})
	}
	return nil
}

// read reads the row of a resource. A few unreadable rows count as missing.
func (l *remoteState) read(ctx context.Context, id int64) (row resourceRow, found bool, err error) {
	if id <= 0 {
		return resourceRow{}, false, nil // the resources of a Helm chart have no rows
	}
	row, found, err = l.resyncer.readResource(ctx, id)
	switch {
	case err == nil:
		return row, found, nil
	case l.resyncer.refused(l.instance, err):
		return resourceRow{}, false, nil
	case ctx.Err() != nil, isGeneral(err):
		return resourceRow{}, false, err
	}
	if l.unread = append(l.unread, err); len(l.unread) > maxUnreadable {
		return resourceRow{}, false, err
	}
	return resourceRow{}, false, nil
}

// refused reports whether the control plane would return the same error again.
func (r *Resyncer) refused(instance target.Instance, err error) bool {
	switch threeport.KindOf(err) {
	case threeport.KindPermanent, threeport.KindNotFound:
	case threeport.KindNone, threeport.KindRetryable, threeport.KindUnauthorized:
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

// isGeneral reports whether the control plane would answer no request at all now.
func isGeneral(err error) bool {
	return threeport.KindOf(err) == threeport.KindUnauthorized || threeport.RetryAfter(err) > 0
}
