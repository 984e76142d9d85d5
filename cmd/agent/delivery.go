package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/controller"
	"github.com/threeport/threeport-agent/internal/agent/journal"
	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// deliveryStatus is the outbox in the terms of the controller, which imports no stage behind it.
type deliveryStatus struct {
	*outbox.Outbox
	state *journal.Journal
}

// Durable reports whether pending reports outlive the process, and why they do not although they should.
func (d deliveryStatus) Durable() (bool, error) { return d.state != nil, d.state.Err() }

// Progress returns the state of the delivery of a workload's reports.
func (d deliveryStatus) Progress(instance target.Instance) controller.Progress {
	p := d.Outbox.Progress(instance)
	out := controller.Progress{
		Pending: p.Pending, Since: p.Since, LastError: p.LastError, Rejected: p.Rejected, Dropped: p.Dropped, Synced: p.Synced,
		Operations: make(map[target.Resource]controller.Operation, len(p.Operations)),
	}
	for _, r := range p.Rejections {
		out.Rejections = append(out.Rejections, v1alpha1.Rejection{Report: r.Report, Reason: r.Reason, Time: metav1.NewTime(r.Time)})
	}
	for resource, op := range p.Operations {
		out.Operations[resource] = controller.Operation{Name: notify.OperationName(op), ResourceVersion: op.ResourceVersion}
	}
	return out
}
