package resync

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// finding is a row of the control plane that is not as it was reported, or a report that was never made.
type drift struct {
	report  observe.Report
	receipt outbox.Receipt // what the control plane has of the key
	neverReported bool           // the outbox has never heard of the key
	fields []string       // names of fields, or what else is wrong; never contents
}

// same reports whether two findings are about the same report.
func (a *Resyncer) same(f, other drift) bool {
	return f.report.Key() == other.report.Key() && a.outbox.VersionOf(f.report) == a.outbox.VersionOf(other.report)
}

// wholeRow is the name for a whole row in [finding.differs].
const wholeRow = "row"

// look is one comparison of an instance with its rows.
//
// What it finds may be traffic that it meets on the way, so it takes three things in this order: the reports that are
// due, how far the outbox is with each, and the rows. A row is compared only if its key was settled, at the version of
// the report, before the row was read. Then a difference is somebody else's, or a newer report's that was accepted
// since; and that one makes [Outbox.Resend] do nothing. What is pending or was refused is left alone. Other races (a
// report that is to be offered in the next moment, a deletion that is delivered and forgotten in between) do not outlast
// a second look.
func (a *Resyncer) diff(ctx context.Context, instance target.Instance) ([]drift, error) {
	inventory, complete, err := a.desiredState(ctx, instance)
	if err != nil || !complete {
		return nil, err
	}
	l := &comparison{resyncer: a, states: map[observe.Key]outbox.Snapshot{}}
	l.note(inventory.Status)
	for _, op := range inventory.Operations {
		l.note(op)
	}
	for _, ev := range inventory.Events {
		l.note(ev)
	}
	exists, err := l.status(ctx, instance, inventory.Status)
	if err != nil || !exists {
		return nil, err // nothing can be held for an instance that is gone
	}
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
	if err := l.events(ctx, instance, inventory.Events); err != nil {
		return nil, err
	}
	return l.drifts, nil
}

// comparison is a look that is under way.
type comparison struct {
	resyncer *Resyncer
	states  map[observe.Key]outbox.Snapshot
	drifts   []drift
	// keptAfter is up to when the control plane keeps no Events of the instance; nil until that was asked.
	keptAfter *time.Time
}

func (l *comparison) note(r observe.Report) {
	key := r.Key()
	l.states[key] = l.resyncer.outbox.State(key)
}

// due tells whether a report's row is to be compared.
func (l *comparison) isDue(r observe.Report) (state outbox.Snapshot, due bool) {
	state = l.states[r.Key()]
	switch state.Phase {
	case outbox.Unknown:
		return state, true
	case outbox.Settled:
		return state, state.Version == l.resyncer.outbox.VersionOf(r)
	case outbox.Pending, outbox.Rejected:
	}
	return state, false
}

func (l *comparison) add(r observe.Report, state outbox.Snapshot, receipt outbox.Receipt, differs []string) {
	unheard := state.Phase == outbox.Unknown
	if unheard {
		differs = []string{"never reported"}
	}
	if len(differs) > 0 {
		l.drifts = append(l.drifts, drift{report: r, receipt: receipt, neverReported: unheard, fields: differs})
	}
}

// status compares the status. It returns false if there is no such instance.
func (l *comparison) status(ctx context.Context, instance target.Instance, verdict observe.Status) (exists bool, err error) {
	has, err := l.resyncer.readStatus(ctx, instance)
	switch {
	case threeport.KindOf(err) == threeport.KindNotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	state, due := l.isDue(verdict)
	if !due || verdict.Status == "" {
		return true, nil
	}
	var differs []string
	if has == nil || *has != verdict.Status {
		differs = []string{"Status"}
	}
	l.add(verdict, state, state.Receipt, differs)
	return true, nil
}

func (a *Resyncer) readStatus(ctx context.Context, instance target.Instance) (*string, error) {
	if instance.Type == target.HelmWorkloadInstance {
		row, err := a.api.GetHelmWorkloadInstance(ctx, instance.ID)
		return row.Status, err
	}
	row, err := a.api.GetWorkloadInstance(ctx, instance.ID)
	return row.Status, err
}

// operation compares the row of an object that exists.
func (l *comparison) operation(ctx context.Context, op observe.Operation) error {
	state, due := l.isDue(op)
	if !due || op.Attribution.Resource.ID <= 0 {
		return nil
	}
	row, found, err := l.resyncer.readResource(ctx, op.Attribution.Resource.ID)
	if err != nil || !found {
		return err // a row that is gone does not come back
	}
	differs, err := row.changes(op)
	if err != nil {
		return fmt.Errorf("audit %s: %w", op, err)
	}
	l.add(op, state, outbox.Receipt{Accepted: row.exists && row.uid == op.Object.UID}, differs)
	return nil
}

// absent compares the row of an object that does not exist. Which incarnation it speaks of only the row tells, so how
// far the outbox is with that is asked for late: the second look makes up for it.
func (l *comparison) absent(ctx context.Context, claim target.Attribution) error {
	if claim.Resource.ID <= 0 {
		return nil
	}
	row, found, err := l.resyncer.readResource(ctx, claim.Resource.ID)
	if err != nil || !found || !row.exists {
		return err
	}
	op := row.deletion(claim, claim.Resource.Ref)
	state := l.resyncer.outbox.State(op.Key())
	switch {
	case state.Phase == outbox.Pending, state.Phase == outbox.Rejected:
		return nil
	case state.Version != l.resyncer.outbox.VersionOf(op):
		state.Phase = outbox.Unknown // of its deletion the outbox has not heard
	}
	l.add(op, state, outbox.Receipt{Accepted: true}, []string{"LastOperation"})
	return nil
}

// events compares the rows of Events.
func (l *comparison) events(ctx context.Context, instance target.Instance, events []observe.Event) error {
	due := map[types.UID]observe.Event{}
	for _, ev := range events {
		if _, ok := l.isDue(ev); ok {
			due[ev.UID] = ev
		}
	}
	if len(due) == 0 {
		return nil
	}
	rows, err := l.resyncer.readEvents(ctx, instance, events, func(uid types.UID) bool {
		_, ok := due[uid]
		return ok
	})
	if err != nil {
		return err
	}
	for _, ev := range events {
		if _, ok := due[ev.UID]; !ok {
			continue
		}
		if err := l.event(ctx, ev, rows); err != nil {
			return err
		}
	}
	return nil
}

// event compares the row that the receipt names. If it is not where rows of the instance are, it was pruned, or it may be
// older than what was read, or another instance's.
func (l *comparison) event(ctx context.Context, ev observe.Event, rows eventRows) error {
	state, _ := l.isDue(ev)
	receipt := state.Receipt
	row, found := rows.row(ev.UID, receipt.RowID)
	if !found {
		if pruned, err := l.pruned(ctx, ev); pruned || err != nil {
			return err
		}
		if err := l.resyncer.readEvent(ctx, ev.UID, rows); err != nil {
			return err
		}
		row, found = rows.row(ev.UID, receipt.RowID)
	}
	ev.Preexisting = true // there may be a row by the time that it is sent
	if found {
		receipt.RowID = *row.ID
		l.add(ev, state, receipt, notify.EventChanges(ev, receipt, row))
		return nil
	}
	receipt.RowID, receipt.Instance = 0, target.Instance{}
	if row, found = rows.oldest(ev.UID); found { // somebody else made it
		receipt.RowID = *row.ID
	}
	l.add(ev, state, receipt, []string{wholeRow})
	return nil
}

// pruned reports whether an Event without a row is one that the control plane does not keep, so that it would be sent in
// each audit, and pruned after each, for as long as the cluster has it. It is asked only if there is such an Event: most
// looks find none.
func (l *comparison) pruned(ctx context.Context, ev observe.Event) (bool, error) {
	if l.keptAfter == nil {
		of := threeport.Instance{Type: string(ev.Workload.Type), ID: threeport.ID(ev.Workload.ID)}
		after, err := l.resyncer.api.EventsKeptAfter(ctx, of)
		if err != nil {
			return false, err
		}
		l.keptAfter = &after
	}
	return !ev.Time.Truncate(time.Microsecond).After(*l.keptAfter), nil // rows have no more than microseconds
}
