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
type finding struct {
	report  observe.Report
	receipt outbox.Receipt // what the control plane has of the key
	unheard bool           // the outbox has never heard of the key
	differs []string       // names of fields, or what else is wrong; never contents
}

// same reports whether two findings are about the same report.
func (f finding) same(other finding) bool {
	return f.report.Key() == other.report.Key() && f.report.Version() == other.report.Version()
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
func (a *Resyncer) look(ctx context.Context, instance target.Instance) ([]finding, error) {
	inventory, complete, err := a.cluster.DesiredState(ctx, instance)
	if err != nil || !complete {
		return nil, err
	}
	l := &comparison{auditor: a, states: map[observe.Key]outbox.Snapshot{}}
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
	return l.found, nil
}

// comparison is a look that is under way.
type comparison struct {
	auditor *Resyncer
	states  map[observe.Key]outbox.Snapshot
	found   []finding
	// keptAfter is up to when the control plane keeps no Events of the instance; nil until that was asked.
	keptAfter *time.Time
}

func (l *comparison) note(r observe.Report) {
	key := r.Key()
	l.states[key] = l.auditor.outbox.State(key)
}

// due tells whether a report's row is to be compared.
func (l *comparison) due(r observe.Report) (state outbox.Snapshot, due bool) {
	state = l.states[r.Key()]
	switch state.Phase {
	case outbox.Unknown:
		return state, true
	case outbox.Settled:
		return state, state.Version == r.Version()
	case outbox.Pending, outbox.Rejected:
	}
	return state, false
}

func (l *comparison) find(r observe.Report, state outbox.Snapshot, receipt outbox.Receipt, differs []string) {
	unheard := state.Phase == outbox.Unknown
	if unheard {
		differs = []string{"never reported"}
	}
	if len(differs) > 0 {
		l.found = append(l.found, finding{report: r, receipt: receipt, unheard: unheard, differs: differs})
	}
}

// status compares the status. It returns false if there is no such instance.
func (l *comparison) status(ctx context.Context, instance target.Instance, verdict observe.Status) (exists bool, err error) {
	has, err := l.auditor.readStatus(ctx, instance)
	switch {
	case threeport.KindOf(err) == threeport.KindNotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	state, due := l.due(verdict)
	if !due || verdict.Status == "" {
		return true, nil
	}
	var differs []string
	if has == nil || *has != verdict.Status {
		differs = []string{"Status"}
	}
	l.find(verdict, state, state.Receipt, differs)
	return true, nil
}

func (a *Resyncer) readStatus(ctx context.Context, instance target.Instance) (*string, error) {
	if instance.Type == target.HelmWorkloadInstance {
		row, err := a.plane.GetHelmWorkloadInstance(ctx, instance.ID)
		return row.Status, err
	}
	row, err := a.plane.GetWorkloadInstance(ctx, instance.ID)
	return row.Status, err
}

// operation compares the row of an object that exists.
func (l *comparison) operation(ctx context.Context, op observe.Operation) error {
	state, due := l.due(op)
	if !due || op.Attribution.Resource.ID <= 0 {
		return nil
	}
	row, found, err := l.auditor.readResource(ctx, op.Attribution.Resource.ID)
	if err != nil || !found {
		return err // a row that is gone does not come back
	}
	differs, err := row.changes(op)
	if err != nil {
		return fmt.Errorf("audit %s: %w", op, err)
	}
	l.find(op, state, outbox.Receipt{Accepted: row.exists && row.uid == op.Object.UID}, differs)
	return nil
}

// absent compares the row of an object that does not exist. Which incarnation it speaks of only the row tells, so how
// far the outbox is with that is asked for late: the second look makes up for it.
func (l *comparison) absent(ctx context.Context, claim target.Attribution) error {
	if claim.Resource.ID <= 0 {
		return nil
	}
	row, found, err := l.auditor.readResource(ctx, claim.Resource.ID)
	if err != nil || !found || !row.exists {
		return err
	}
	op := row.deletion(claim, claim.Resource.Ref)
	state := l.auditor.outbox.State(op.Key())
	switch {
	case state.Phase == outbox.Pending, state.Phase == outbox.Rejected:
		return nil
	case state.Version != op.Version():
		state.Phase = outbox.Unknown // of its deletion the outbox has not heard
	}
	l.find(op, state, outbox.Receipt{Accepted: true}, []string{"LastOperation"})
	return nil
}

// events compares the rows of Events.
func (l *comparison) events(ctx context.Context, instance target.Instance, events []observe.Event) error {
	due := map[types.UID]observe.Event{}
	for _, ev := range events {
		if _, ok := l.due(ev); ok {
			due[ev.UID] = ev
		}
	}
	if len(due) == 0 {
		return nil
	}
	rows, err := l.auditor.readEvents(ctx, instance, events, func(uid types.UID) bool {
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
	state, _ := l.due(ev)
	receipt := state.Receipt
	row, found := rows.row(ev.UID, receipt.RowID)
	if !found {
		if pruned, err := l.pruned(ctx, ev); pruned || err != nil {
			return err
		}
		if err := l.auditor.readEvent(ctx, ev.UID, rows); err != nil {
			return err
		}
		row, found = rows.row(ev.UID, receipt.RowID)
	}
	ev.Preexisting = true // there may be a row by the time that it is sent
	if found {
		receipt.RowID = *row.ID
		l.find(ev, state, receipt, notify.EventChanges(ev, receipt, row))
		return nil
	}
	receipt.RowID, receipt.Instance = 0, target.Instance{}
	if row, found = rows.oldest(ev.UID); found { // somebody else made it
		receipt.RowID = *row.ID
	}
	l.find(ev, state, receipt, []string{wholeRow})
	return nil
}

// pruned reports whether an Event without a row is one that the control plane does not keep, so that it would be sent in
// each audit, and pruned after each, for as long as the cluster has it. It is asked only if there is such an Event: most
// looks find none.
func (l *comparison) pruned(ctx context.Context, ev observe.Event) (bool, error) {
	if l.keptAfter == nil {
		of := threeport.Instance{Type: string(ev.Workload.Type), ID: threeport.ID(ev.Workload.ID)}
		after, err := l.auditor.plane.EventsKeptAfter(ctx, of)
		if err != nil {
			return false, err
		}
		l.keptAfter = &after
	}
	return !ev.Time.Truncate(time.Microsecond).After(*l.keptAfter), nil // rows have no more than microseconds
}
