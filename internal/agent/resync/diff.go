package resync

import (
	"context"
	"fmt"
	"slices"
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
	desired, complete, err := r.desiredState(ctx, instance, time.Time{})
	if err != nil || !complete {
		return nil, err
	}
	c := &comparison{resyncer: r, states: map[observe.Key]outbox.KeyState{}}
	c.noteState(desired.Status)
	for _, op := range desired.Operations {
		c.noteState(op)
	}
	for _, ev := range desired.Events {
		c.noteState(ev)
	}
	exists, err := c.status(ctx, instance, desired.Status)
	if err != nil || !exists {
		return nil, err // a deleted instance has no rows
	}
	desired.Operations = slices.DeleteFunc(slices.Clone(desired.Operations), func(op observe.Operation) bool { return !c.isDue(op.Key()) })
	if err := visitRows(ctx, desired, c); err != nil {
		return nil, err
	}
	if err := c.events(ctx, instance, desired.Events); err != nil {
		return nil, err
	}
	return c.drifts, nil
}

// comparison is a diff that is under way.
type comparison struct {
	resyncer *Resyncer
	states   map[observe.Key]outbox.KeyState
	drifts   []drift
	// keptAfter is the time up to which the control plane has pruned the instance's Events; nil until it was read.
	keptAfter *time.Time
}

func (c *comparison) noteState(r observe.Report) {
	key := r.Key()
	c.states[key] = c.resyncer.outbox.State(r)
}

// isDue reports whether the row of a report is to be compared.
func (c *comparison) isDue(key observe.Key) bool {
	state, desired := c.states[key]
	return desired && (state.Phase == outbox.Unknown || state.Phase == outbox.Settled && state.Current)
}

// add adds a drift if there is one.
func (c *comparison) add(r observe.Report, state outbox.KeyState, receipt outbox.Receipt, fields []string) {
	d := drift{report: r, version: r.Version(), receipt: receipt, fields: fields}
	if state.Current {
		d.version = state.Version
	}
	if state.Phase == outbox.Unknown {
		d.neverReported, d.fields = true, []string{"never reported"}
	}
	if len(d.fields) > 0 {
		c.drifts = append(c.drifts, d)
	}
}

// status compares the status. It returns false if the control plane does not have the instance.
func (c *comparison) status(ctx context.Context, instance target.Instance, verdict observe.Status) (exists bool, err error) {
	exists, differs, err := c.resyncer.compareStatus(ctx, instance, verdict)
	if err != nil || !exists {
		return false, err
	}
	if !c.isDue(verdict.Key()) || verdict.Status == "" {
		return true, nil
	}
	var fields []string
	if differs {
		fields = []string{"Status"}
	}
	state := c.states[verdict.Key()]
	c.add(verdict, state, state.Receipt, fields)
	return true, nil
}

// read implements [rowVisitor]. A row that was deleted is skipped: it does not come back.
func (c *comparison) read(ctx context.Context, id int64) (resourceRow, bool, error) {
	return c.resyncer.readResource(ctx, id)
}

// existing implements [rowVisitor].
func (c *comparison) existing(ctx context.Context, op observe.Operation, row resourceRow) error {
	differs, err := row.changes(ctx, op)
	if err != nil {
		return fmt.Errorf("compare %s: %w", op, err)
	}
	c.add(op, c.states[op.Key()], row.receipt(op.Object), differs)
	return nil
}

// absent implements [rowVisitor]. Only the row has the UID of the object, so the state of the outbox is read after the row;
// the recheck corrects this.
func (c *comparison) absent(attribution target.Attribution, row resourceRow) {
	if !row.exists {
		return
	}
	op := row.deletion(attribution, attribution.Resource.Ref)
	state := c.resyncer.outbox.State(op)
	switch {
	case state.Phase == outbox.Pending, state.Phase == outbox.Rejected:
		return
	case !state.Current:
		state.Phase = outbox.Unknown // the outbox does not know of the deletion
	}
	c.add(op, state, outbox.Receipt{Accepted: true}, []string{"LastOperation"})
}

// events compares the rows of Events.
func (c *comparison) events(ctx context.Context, instance target.Instance, events []observe.Event) error {
	due := slices.DeleteFunc(slices.Clone(events), func(ev observe.Event) bool { return !c.isDue(ev.Key()) })
	if len(due) == 0 {
		return nil
	}
	rows, err := c.resyncer.readEvents(ctx, instance, events, func(uid types.UID) (rowID int64, wanted bool) {
		key := observe.EventKey(uid)
		return c.states[key].Receipt.RowID, c.isDue(key)
	})
	if err != nil {
		return err
	}
	for _, ev := range due {
		if err := c.event(ctx, ev, rows); err != nil {
			return err
		}
	}
	return nil
}

// event compares the row of the receipt. If it is not among the rows of the instance, it was pruned, or it is older than the
// rows that were read, or it belongs to another instance.
func (c *comparison) event(ctx context.Context, ev observe.Event, rows eventRows) error {
	state := c.states[ev.Key()]
	receipt := state.Receipt
	row, found := rows.row(ev.UID, receipt.RowID)
	if !found {
		if pruned, err := c.pruned(ctx, ev); pruned || err != nil {
			return err
		}
		if err := c.resyncer.readEvent(ctx, ev.UID, receipt.RowID, rows); err != nil {
			return err
		}
		row, found = rows.row(ev.UID, receipt.RowID)
	}
	ev.MayHaveRow = true // a row may be created before the repair is sent
	if found {
		receipt.RowID = *row.ID
		c.add(ev, state, receipt, notify.EventChanges(ev, receipt, row))
		return nil
	}
	receipt.RowID, receipt.Instance = 0, target.Instance{}
	if row, found = rows.oldest(ev.UID); found { // somebody else created it
		receipt.RowID = *row.ID
	}
	c.add(ev, state, receipt, []string{wholeRow})
	return nil
}

// pruned reports whether the control plane has pruned the row of an Event, or would do so. A repair would be sent and pruned
// in each round, as long as the cluster has the Event. The time is read only if such an Event is found.
func (c *comparison) pruned(ctx context.Context, ev observe.Event) (bool, error) {
	if c.keptAfter == nil {
		of := threeport.Instance{Type: string(ev.Workload.Type), ID: threeport.ID(ev.Workload.ID)}
		after, err := c.resyncer.api.EventsKeptAfter(ctx, of)
		if err != nil {
			return false, err
		}
		c.keptAfter = &after
	}
	return !ev.Time.Truncate(time.Microsecond).After(*c.keptAfter), nil // the precision of rows
}
