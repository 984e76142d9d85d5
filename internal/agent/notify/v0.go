package notify

import (
	"context"
	"fmt"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// V0Sender sends reports in version v0 of the control-plane API, one request per report.
type V0Sender struct{ client *threeport.Client }

// NewV0Sender returns a sender that uses a client.
func NewV0Sender(client *threeport.Client) *V0Sender { return &V0Sender{client} }

// Send delivers one report. A status and an operation update a row. An Event creates a row, and its repeats update that.
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
	op, err := load(ctx, op)
	if err != nil {
		return err
	}
	row, err := OperationRow(op, known)
	if err != nil { // a retry would not help
		return &threeport.Error{Op: "update workload resource instance", Unsendable: true, Err: err}
	}
	return a.client.UpdateWorkloadResourceInstance(ctx, op.Attribution.Resource.ID, row)
}

// event returns the receipt of the Event's row. Creating a row is not idempotent. If an earlier try, an earlier process or a
// report set may have created it, it is looked for first. An existing row is updated, and a deleted one is created again.
func (a *V0Sender) event(ctx context.Context, ev observe.Event, item outbox.Item) (outbox.Receipt, error) {
	receipt := item.Receipt
	// An Event that was accepted in a set has a row, but its ID is not known.
	unsure := item.Attempt > 1 || ev.MayHaveRow || receipt.Accepted
	if receipt.RowID != 0 {
		err := a.client.UpdateWorkloadEvent(ctx, receipt.RowID, EventUpdate(ev, receipt))
		if threeport.KindOf(err) != threeport.KindNotFound {
			return receipt, err
		}
		unsure = true // an earlier try may have found the same, and created another row
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
	case created: // else the control plane has a row with the UID, which it returned
		return outbox.Receipt{RowID: row, Instance: ev.Workload}, nil
	}
	receipt = outbox.Receipt{RowID: row}
	return receipt, a.client.UpdateWorkloadEvent(ctx, row, EventUpdate(ev, receipt))
}
