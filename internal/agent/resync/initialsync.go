package resync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

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

// turnTime is how long an initial sync reads objects and rows before it leaves its sender to other instances. An instance may have
// thousands, and each is one request.
const turnTime = 500 * time.Millisecond

// longerAfter is the number of turns after which the next ones are longer. The objects of an instance may change as fast as one turn can
// read them.
const longerAfter = 20

// InitialSync reads the remote state of an instance and passes it to the outbox. Attempt counts from 1. It returns
// [notify.ErrNotReady] while not all of the instance has been listed, [notify.ErrIncomplete] if its turn has ended, and
// otherwise the errors of the control plane.
func (r *Resyncer) InitialSync(ctx context.Context, instance target.Instance, attempt int) error {
	found := r.beginTurn(instance)
	desired, err := r.stateOf(ctx, found)
	if err != nil {
		return err
	}
	err = found.readAll(ctx, desired)
	if err == nil && attempt < maxAttempts {
		err = errors.Join(found.unread...)
	}
	r.keep(instance, desired, found, err)
	if err == nil {
		found.apply(desired)
	}
	return err
}

// maxKept is how long the rows that a failed attempt has read count as those of the control plane. After a long outage, it may have others.
const maxKept = 10 * time.Minute

// keep keeps the state of an attempt for the next one, unless the initial sync is done. The next attempt reads only the rest of the rows.
// A control plane that fails at some of 500 reads would stop the workload for ever.
func (r *Resyncer) keep(instance target.Instance, desired observe.DesiredState, found *remoteState, err error) {
	r.mu.Lock()
	delete(r.incomplete, instance)
	delete(r.lastState, instance)
	switch {
	case err == nil || found.begun.IsZero(): // without the rows of Events, it starts again
	case errors.Is(err, notify.ErrIncomplete):
		r.incomplete[instance] = found
	case time.Since(found.begun) < maxKept:
		found.retryUnread()
		r.incomplete[instance] = found
	}
	if err != nil {
		desired.Events = nil // there may be thousands, and the outbox has those that are pending
		r.lastState[instance] = desired
	}
	many := max(len(r.lastState), len(r.incomplete)) >= max(r.forgetAt, minForgetAt)
	r.mu.Unlock()
	if many {
		r.forgetUndeclared()
	}
}

// minForgetAt is the least number of kept states at which those of undeclared instances are dropped.
const minForgetAt = 16

// forgetUndeclared drops the states of instances that are no longer declared, whose initial sync may never come again.
func (r *Resyncer) forgetUndeclared() {
	declared := sets.New(r.cluster.Instances()...)
	gone := func(instance target.Instance) bool { return !declared.Has(instance) }
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.lastState, func(instance target.Instance, _ observe.DesiredState) bool { return gone(instance) })
	maps.DeleteFunc(r.incomplete, func(instance target.Instance, _ *remoteState) bool { return gone(instance) })
	r.forgetAt = 2 * max(len(r.lastState), len(r.incomplete))
}

// errNotListed is the cause of an initial sync that is not ready, unless the API server fails.
var errNotListed = errors.New("not all objects of the workload have been listed yet")

// stateOf returns what the cluster has of an instance. When the agent stops, the informers end before the last reports
// are delivered. Then it returns the state of the last attempt.
func (r *Resyncer) stateOf(ctx context.Context, s *remoteState) (observe.DesiredState, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	desired, complete, err := r.desiredState(ctx, s.instance, s.turnEnd)
	if err == nil && complete {
		return desired, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch before, ok := r.lastState[s.instance]; {
	case ok && r.ended:
		return before, nil
	case err == nil && s.turnHasEnded():
		r.incomplete[s.instance] = s
		return observe.DesiredState{}, notify.ErrIncomplete
	}
	if err == nil {
		err = errNotListed
	}
	return observe.DesiredState{}, fmt.Errorf("%w: %w", notify.ErrNotReady, err)
}

// remoteState is what the control plane has of an instance.
type remoteState struct {
	resyncer *Resyncer
	instance target.Instance
	known    []outbox.Known
	missed   []observe.Operation
	drifts   []drift // rows that differ from the cluster, whatever the outbox believes

	begun time.Time // when the reading of rows began; zero before

	visited   sets.Set[int64] // the rows of resources that were read, and those of unreadIDs
	unread    []error         // of a few rows that could not be read in this attempt
	unreadIDs []int64         // of the same rows

	turns   int
	turnEnd time.Time // zero for none
}

// turnHasEnded reports whether other instances are to have the sender.
func (s *remoteState) turnHasEnded() bool { return !s.turnEnd.IsZero() && time.Now().After(s.turnEnd) }

// retryUnread makes the next attempt read the rows again that could not be read in this one.
func (s *remoteState) retryUnread() {
	s.visited.Delete(s.unreadIDs...)
	s.unread, s.unreadIDs = nil, nil
}

// readAll reads the rows of an instance. It skips rows that the control plane always refuses to return: the sender of an Event then
// looks for its row. It reads no rows of an instance that the control plane does not know, because there are none. A user may declare any
// number of such instances, with thousands of resources each.
func (s *remoteState) readAll(ctx context.Context, desired observe.DesiredState) error {
	if s.begun.IsZero() {
		now := time.Now()
		exists, err := s.status(ctx, desired.Status)
		if err != nil || !exists {
			return err
		}
		s.known, err = s.resyncer.knownEvents(ctx, s.instance, desired.Events)
		if err = s.resyncer.skipRefused(s.instance, err); err != nil {
			return err
		}
		s.begun = now
	}
	return visitRows(ctx, desired, s)
}

// beginTurn returns the remote state to which this turn adds. Earlier turns may have read a part of it. When the agent stops, the last
// turn does not end before all is read.
func (r *Resyncer) beginTurn(instance target.Instance) *remoteState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.incomplete[instance]
	if !ok {
		s = &remoteState{resyncer: r, instance: instance, visited: sets.New[int64]()}
	}
	s.turnEnd = time.Time{}
	if !r.ended {
		s.turnEnd = time.Now().Add(min(turnTime*time.Duration(1+s.turns/longerAfter), stateTimeout))
	}
	s.turns++
	return s
}

// apply passes the remote state to the outbox.
func (s *remoteState) apply(desired observe.DesiredState) {
	box, log := s.resyncer.outbox, s.resyncer.log.WithValues("instance", s.instance.String())
	if len(s.unread) > 0 {
		log.Info("The initial sync skips rows that cannot be read",
			"rows", len(s.unread), "error", s.unread[0].Error())
	}
	box.Seed(s.instance, s.known, s.missed, desired.Events)
	for _, d := range s.drifts { // Resend has no effect on a report that is not settled.
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

// status reads whether the control plane has another status. It returns false if the control plane does not know the instance.
func (s *remoteState) status(ctx context.Context, verdict observe.Status) (exists bool, err error) {
	exists, differs, err := s.resyncer.compareStatus(ctx, s.instance, verdict)
	switch {
	case err != nil:
		return true, s.resyncer.skipRefused(s.instance, err)
	case !exists:
		return false, nil
	case differs && verdict.Status != "":
		s.drifts = append(s.drifts, drift{report: verdict, receipt: outbox.Receipt{Accepted: true}})
	}
	return true, nil
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

// read implements [rowVisitor]. A few unreadable rows count as missing. Rows of earlier turns are skipped.
func (s *remoteState) read(ctx context.Context, id int64) (row resourceRow, found bool, err error) {
	if id <= 0 || s.visited.Has(id) {
		return resourceRow{}, false, nil
	}
	if s.turnHasEnded() {
		return resourceRow{}, false, notify.ErrIncomplete
	}
	row, found, err = s.resyncer.readResource(ctx, id)
	err = s.resyncer.skipRefused(s.instance, err)
	if ctx.Err() != nil || refusesInstance(err) {
		return resourceRow{}, false, err
	}
	s.visited.Insert(id)
	if err == nil {
		return row, found, nil
	}
	s.unreadIDs = append(s.unreadIDs, id)
	if s.unread = append(s.unread, err); len(s.unread) > maxUnreadable {
		return resourceRow{}, false, err
	}
	return resourceRow{}, false, nil
}

// skipRefused returns the error of a read, or nil if the control plane would always answer with this error: then the rows are skipped,
// and the error is logged.
func (r *Resyncer) skipRefused(instance target.Instance, err error) error {
	if kind := threeport.KindOf(err); kind != threeport.KindPermanent && kind != threeport.KindNotFound {
		return err
	}
	r.log.Info("The control plane refuses to return rows of a workload", "instance", instance.String(), "error", err.Error())
	return nil
}

// knownEvents returns the remote state of an instance's Events, and of other Events that the outbox knows.
func (r *Resyncer) knownEvents(ctx context.Context, instance target.Instance, events []observe.Event) ([]outbox.Known, error) {
	byUID := make(map[types.UID]observe.Event, len(events))
	for _, ev := range events {
		byUID[ev.UID] = ev
	}
	rows, err := r.readEvents(ctx, instance, events, func(uid types.UID) (rowID int64, wanted bool) {
		_, listed := byUID[uid]
		return 0, listed || r.outbox.State(observe.Event{UID: uid}).Phase != outbox.Unknown
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

// refusesInstance reports whether the control plane would now refuse all other rows of the instance too.
func refusesInstance(err error) bool {
	kind := threeport.KindOf(err)
	return kind == threeport.KindUnauthorized || kind == threeport.KindForbidden || threeport.RetryAfter(err) > 0
}
