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

// drift is a row of the control plane that differs from its report, or a report that was never made.
type drift struct {
	report        observe.Report
	version       string         // of the report, in its protocol
	receipt       outbox.Receipt // state of the key in the control plane
	neverReported bool           // the outbox does not know the key
	fields        []string       // names of fields, or another difference
}

// same reports whether two drifts are of the same report.
func (d drift) same(other drift) bool {
	return d.report.Key() == other.report.Key() && d.version == other.version
}

// wholeRow stands for a whole row in [drift.fields].
const wholeRow = "row"

// diff compares an instance with its rows once.
//
// Reports are delivered meanwhile, so it reads in this order: the reports that the cluster implies, the state of each in the
// outbox, the rows. A row is compared only if its key was settled, at the version of the report, before the row was read.
// Then either somebody else changed the row, or a newer report was accepted in between, and [Outbox.Resend] does nothing.
// Keys with a pending or rejected report are skipped. Other races (a report that is about to be offered, a deletion that is
// delivered and forgotten in between) are gone at the recheck.
func (r *Resyncer) diff(ctx context.Context, instance target.Instance) ([]drift, error) {
	desired, complete, err := r.desiredState(ctx, instance)
	if err != nil || !complete {
		return nil, err
	}
	l := &comparison{resyncer: r, states: map[observe.Key]outbox.Snapshot{}}
	l.noteState(desired.Status)
	for _, op := range desired.Operations {
		l.noteState(op)
	}
	for _, ev := range desired.Events {
		l.noteState(ev)
	}
	exists, err := l.status(ctx, instance, desired.Status)
	if err != nil || !exists {
		return nil, err // a deleted instance has no rows
	}
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
	if err := l.events(ctx, instance, desired.Events); err != nil {
		return nil, err
	}
	return l.drifts, nil
}

// comparison is a diff that is under way.
type comparison struct {
	resyncer *Resyncer
	states   map[observe.Key]outbox.Snapshot
	drifts   []drift
	// keptAfter is the time up to which the control plane has pruned the instance's Events; nil until it was read.
	keptAfter *time.Time
}

func (l *comparison) noteState(r observe.Report) {
	key := r.Key()
	l.states[key] = l.resyncer.outbox.State(r)
}

// isDue reports whether the row of a report is to be compared.
func (l *comparison) isDue(r observe.Report) (state outbox.Snapshot, due bool) {
	state = l.states[r.Key()]
	switch state.Phase {
	case outbox.Unknown:
		return state, true
	case outbox.Settled:
		return state, state.Current
	case outbox.Pending, outbox.Rejected:
	}
	return state, false
}

// add adds a drift if there is one.
func (l *comparison) add(r observe.Report, state outbox.Snapshot, receipt outbox.Receipt, fields []string) {
	d := drift{report: r, version: r.Version(), receipt: receipt, fields: fields}
	if state.Current {
		d.version = state.Version
	}
	if state.Phase == outbox.Unknown {
		d.neverReported, d.fields = true, []string{"never reported"}
	}
	if len(d.fields) > 0 {
		l.drifts = append(l.drifts, d)
	}
}

// status compares the status. It returns false if the control plane does not have the instance.
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

func (r *Resyncer) readStatus(ctx context.Context, instance target.Instance) (*string, error) {
	if instance.Type == target.HelmWorkloadInstance {
		row, err := r.api.GetHelmWorkloadInstance(ctx, instance.ID)
		return row.Status, err
	}
	row, err := r.api.GetWorkloadInstance(ctx, instance.ID)
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
		return err // a deleted row does not come back
	}
	differs, err := row.changes(op)
	if err != nil {
		return fmt.Errorf("compare %s: %w", op, err)
	}
	l.add(op, state, outbox.Receipt{Accepted: row.exists && row.uid == op.Object.UID}, differs)
	return nil
}

// absent compares the row of an object that does not exist. Only the row has the UID of the object, so the state of the
// outbox is read after the row; the recheck corrects this.
func (l *comparison) absent(ctx context.Context, attribution target.Attribution) error {
	if attribution.Resource.ID <= 0 {
		return nil
	}
	row, found, err := l.resyncer.readResource(ctx, attribution.Resource.ID)
	if err != nil || !found || !row.exists {
		return err
	}
	op := row.deletion(attribution, attribution.Resource.Ref)
	state := l.resyncer.outbox.State(op)
	switch {
	case state.Phase == outbox.Pending, state.Phase == outbox.Rejected:
		return nil
	case !state.Current:
		state.Phase = outbox.Unknown // the outbox does not know of the deletion
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

// event compares the row of the receipt. If it is not among the rows of the instance, it was pruned, or it is older than the
// rows that were read, or it belongs to another instance.
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
	ev.Preexisting = true // a row may be created before the repair is sent
	if found {
		receipt.RowID = *row.ID
		l.add(ev, state, receipt, notify.EventChanges(ev, receipt, row))
		return nil
	}
	receipt.RowID, receipt.Instance = 0, target.Instance{}
	if row, found = rows.oldest(ev.UID); found { // somebody else created it
		receipt.RowID = *row.ID
	}
	l.add(ev, state, receipt, []string{wholeRow})
	return nil
}

// pruned reports whether the control plane has pruned the row of an Event, or would do so. A repair would be sent and pruned
// in each round, as long as the cluster has the Event. The time is read only if such an Event is found.
func (l *comparison) pruned(ctx context.Context, ev observe.Event) (bool, error) {
	if l.keptAfter == nil {
		of := threeport.Instance{Type: string(ev.Workload.Type), ID: threeport.ID(ev.Workload.ID)}
		after, err := l.resyncer.api.EventsKeptAfter(ctx, of)
		if err != nil {
			return false, err
		}
		l.keptAfter = &after
	}
	return !ev.Time.Truncate(time.Microsecond).After(*l.keptAfter), nil // the precision of rows
}
