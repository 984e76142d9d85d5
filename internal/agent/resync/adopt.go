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

// Up to so many rows that cannot be read, so often, while others can, do not hold back an instance.
const unreadableRows, patience = 3, 3

// inventoryTimeout bounds how long the API server may take for the objects of an instance: a sender waits meanwhile.
const inventoryTimeout = 5 * time.Second

// InitialSync reads what the control plane has of an instance, and tells the outbox. Attempt counts from 1. It returns
// [notify.ErrNotYet] while not all of the instance has been seen, and else the errors of the control plane.
func (a *Resyncer) InitialSync(ctx context.Context, instance target.Instance, attempt int) error {
	inventory, err := a.inventory(ctx, instance)
	if err != nil {
		return err
	}
	found, err := a.readAll(ctx, instance, inventory)
	if err == nil && attempt < patience {
		err = errors.Join(found.unread...)
	}
	a.mu.Lock()
	if err != nil {
		a.seen[instance] = inventory
	} else {
		delete(a.seen, instance)
	}
	a.mu.Unlock()
	if err == nil {
		found.tell(inventory)
	}
	return err
}

// inventory returns what the cluster has of an instance. When the agent stops, nothing is watched any more while the
// last reports are delivered: then it is what it was when the control plane could not be read.
func (a *Resyncer) inventory(ctx context.Context, instance target.Instance) (observe.DesiredState, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	inventory, complete, err := a.cluster.DesiredState(ctx, instance)
	switch {
	case err != nil:
		a.log.V(1).Info("A workload's objects cannot be read", "instance", instance.String(), "error", err.Error())
	case complete:
		return inventory, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.seen[instance]; ok && a.ended {
		return before, nil
	}
	return observe.DesiredState{}, notify.ErrNotYet
}

// adoption is what was read of an instance.
type adoption struct {
	auditor  *Resyncer
	instance target.Instance
	known    []outbox.Known
	missed   []observe.Operation
	wrong    []finding // rows that are not as the cluster is, whatever the outbox believes
	unread   []error   // of a few rows that could not be read, while others could
}

// readAll reads the rows of an instance. What the control plane refuses to tell, which does not pass by waiting, is not
// known: Events that may have a row are then looked for one by one when they are sent.
func (a *Resyncer) readAll(ctx context.Context, instance target.Instance, inventory observe.DesiredState) (*adoption, error) {
	known, err := a.knownEvents(ctx, instance, inventory.Events)
	if err != nil && !a.refused(instance, err) {
		return nil, err
	}
	l := &adoption{auditor: a, instance: instance, known: known}
	for _, op := range inventory.Operations {
		if err := l.operation(ctx, op); err != nil {
			return nil, err
		}
	}
	for _, claim := range inventory.Absent {
		if err := l.absent(ctx, claim); err != nil {
			return nil, err
		}
	}
	return l, l.status(ctx, inventory.Status)
}

// tell tells the outbox.
func (l *adoption) tell(inventory observe.DesiredState) {
	box, log := l.auditor.outbox, l.auditor.log.WithValues("instance", l.instance.String())
	if len(l.unread) > 0 {
		log.Info("A workload is adopted though some of its rows cannot be read: what they say is not known",
			"rows", len(l.unread), "error", l.unread[0].Error())
	}
	box.Seed(l.instance, l.known, l.missed, inventory.Events)
	for _, f := range l.wrong { // nothing happens unless the memory says that it was accepted
		box.Resend(f.report, f.receipt)
	}
	log.V(1).Info("A workload is adopted", "known", len(l.known), "missedDeletions", len(l.missed))
}

// operation learns what the row of an object that exists says. An incarnation that was never reported, or as deleted,
// is not known, and will be ADDED; and so is one of another UID, after the deletion of what the row tells of.
func (l *adoption) operation(ctx context.Context, op observe.Operation) error {
	row, found, err := l.read(ctx, op.Attribution.Resource.ID)
	if err != nil || !found {
		return err
	}
	k := outbox.Known{Key: op.Key(), Lane: op.OrderingKey(), Receipt: outbox.Receipt{Accepted: row.exists && row.uid == op.Object.UID}}
	if changes, err := row.changes(op); err == nil && len(changes) == 0 {
		k.Version, k.Modified = op.Version(), row.modified()
	} else {
		l.wrong = append(l.wrong, finding{report: op, receipt: k.Receipt})
	}
	switch {
	case !row.exists:
	case row.uid == op.Object.UID:
		l.known = append(l.known, k)
	case row.uid != "": // without one it may be the same: no deletion is made up
		l.missed = append(l.missed, row.deletion(op.Attribution, op.Object.Ref))
	}
	return nil
}

// status learns whether the control plane has another status.
func (l *adoption) status(ctx context.Context, verdict observe.Status) error {
	if verdict.Status == "" {
		return nil
	}
	has, err := l.auditor.readStatus(ctx, l.instance)
	if err == nil && (has == nil || *has != verdict.Status) {
		l.wrong = append(l.wrong, finding{report: verdict, receipt: outbox.Receipt{Accepted: true}})
	}
	if err != nil && l.auditor.refused(l.instance, err) {
		return nil
	}
	return err
}

// absent learns whether the deletion of an object was missed.
func (l *adoption) absent(ctx context.Context, claim target.Attribution) error {
	row, found, err := l.read(ctx, claim.Resource.ID)
	if err != nil || !found {
		return err
	}
	switch op := row.deletion(claim, claim.Resource.Ref); {
	case row.exists:
		l.missed = append(l.missed, op)
	case row.LastOperation != nil && *row.LastOperation == threeport.OperationDeleted:
		l.known = append(l.known, outbox.Known{Deletion: &op})
	}
	return nil
}

// read reads the row of a resource. A few that cannot be read are noted, and are not found.
func (l *adoption) read(ctx context.Context, id int64) (row resourceRow, found bool, err error) {
	if id <= 0 {
		return resourceRow{}, false, nil // a resource of a chart has no row
	}
	row, found, err = l.auditor.readResource(ctx, id)
	switch {
	case err == nil:
		return row, found, nil
	case l.auditor.refused(l.instance, err):
		return resourceRow{}, false, nil
	case ctx.Err() != nil, general(err):
		return resourceRow{}, false, err
	}
	if l.unread = append(l.unread, err); len(l.unread) > unreadableRows {
		return resourceRow{}, false, err
	}
	return resourceRow{}, false, nil
}

// refused reports whether the control plane would answer the same again.
func (a *Resyncer) refused(instance target.Instance, err error) bool {
	switch threeport.KindOf(err) {
	case threeport.KindPermanent, threeport.KindNotFound:
	case threeport.KindNone, threeport.KindRetryable, threeport.KindUnauthorized:
		return false
	}
	a.log.Info("The control plane does not tell what it has of a workload", "instance", instance.String(), "error", err.Error())
	return true
}

// knownEvents returns what the control plane has of an instance's Events, and of others that the outbox has heard of.
func (a *Resyncer) knownEvents(ctx context.Context, instance target.Instance, events []observe.Event) ([]outbox.Known, error) {
	byUID := make(map[types.UID]observe.Event, len(events))
	for _, ev := range events {
		byUID[ev.UID] = ev
	}
	rows, err := a.readEvents(ctx, instance, events, func(uid types.UID) bool {
		_, listed := byUID[uid]
		return listed || a.outbox.State(observe.EventKey(uid)).Phase != outbox.Unknown
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

// general reports whether the control plane would not answer anything now.
func general(err error) bool {
	return threeport.KindOf(err) == threeport.KindUnauthorized || threeport.RetryAfter(err) > 0
}
