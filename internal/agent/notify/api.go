package notify

import (
	"context"
	"fmt"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// V0Sender sends reports to the control-plane API, version v0.
type V0Sender struct{ client *threeport.Client }

// NewV0Sender returns a sender to the control-plane API.
func NewV0Sender(client *threeport.Client) *V0Sender { return &V0Sender{client} }

// Supports reports whether v0 has a place for a report: it has rows for the operations of listed resources
// of a WorkloadInstance only, which are those with an ID, and none for trees.
func (*V0Sender) Supports(r observe.Report) bool {
	switch r := r.(type) {
	case observe.Operation:
		return r.Attribution.Listed && r.Attribution.Resource.ID > 0
	case observe.Tree:
		return false
	}
	return true
}

// Send delivers one report. A status is what it says; an operation updates the resource's row; an Event
// creates a row, and its repeats update that.
func (a *V0Sender) Send(ctx context.Context, item outbox.Item) (outbox.Receipt, error) {
	switch r := item.Report.(type) {
	case observe.Operation:
		return outbox.Receipt{}, a.operation(ctx, r, item.Receipt.Accepted)
	case observe.Event:
		return a.event(ctx, r, item)
	case observe.Status:
		if r.Workload.Type == target.HelmWorkloadInstance {
			return outbox.Receipt{}, a.client.UpdateHelmWorkloadInstanceStatus(ctx, r.Workload.ID, r.Status)
		}
		return outbox.Receipt{}, a.client.UpdateWorkloadInstanceStatus(ctx, r.Workload.ID, r.Status)
	default:
		return outbox.Receipt{}, fmt.Errorf("send %s: there is no request for a %T", r, r)
	}
}

func (a *V0Sender) operation(ctx context.Context, op observe.Operation, known bool) error {
	row, err := OperationRow(op, known)
	if err != nil { // it will not be JSON at the next try either
		return &threeport.Error{Op: "update workload resource instance", Unsendable: true, Err: err}
	}
	return a.client.UpdateWorkloadResourceInstance(ctx, op.Attribution.Resource.ID, row)
}

// event returns the receipt of the Event's row. Creating one is not idempotent: when an earlier try, an earlier process, or
// a set may have made a row, it is looked for first. A row that is there already is brought up to date, and one that
// is gone is made anew.
func (a *V0Sender) event(ctx context.Context, ev observe.Event, item outbox.Item) (outbox.Receipt, error) {
	receipt := item.Receipt
	// What was accepted as part of a set has a row, of which only the control plane knows the ID.
	unsure := item.Attempt > 1 || ev.Preexisting || receipt.Accepted
	if receipt.RowID != 0 {
		err := a.client.UpdateWorkloadEvent(ctx, receipt.RowID, EventUpdate(ev, receipt))
		if threeport.KindOf(err) != threeport.KindNotFound {
			return receipt, err
		}
		unsure = true // the try before this one may have found the same, and made another
	}
	if unsure {
		row, found, err := a.client.FindWorkloadEvent(ctx, string(ev.UID))
		if err != nil {
			return item.Receipt, err
		}
		if receipt = (outbox.Receipt{RowID: row}); found {
			err := a.client.UpdateWorkloadEvent(ctx, row, EventUpdate(ev, receipt))
			if threeport.KindOf(err) != threeport.KindNotFound {
				return receipt, err
			}
		}
	}
	row, created, err := a.client.CreateWorkloadEvent(ctx, EventRow(ev))
	switch {
	case err != nil:
		return receipt, err
	case created:
		return outbox.Receipt{RowID: row, Instance: ev.Workload}, nil
	}
	receipt = outbox.Receipt{RowID: row}
	return receipt, a.client.UpdateWorkloadEvent(ctx, row, EventUpdate(ev, receipt))
}
