package notify

import (
	"maps"
	"sync"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// sentStatus is the last status that the control plane took of an instance, with the counts in it.
type sentStatus struct {
	status observe.Status
	counts outbox.DeliveryCounts
}

// deliveryCounts keeps the delivery counts that the control plane has of each instance up to date. They are part of a
// status in a report set, and change without a change of the status.
type deliveryCounts struct {
	box *outbox.Outbox

	mu   sync.Mutex
	sent map[target.Instance]sentStatus
}

func newDeliveryCounts(box *outbox.Outbox) *deliveryCounts {
	return &deliveryCounts{box: box, sent: map[target.Instance]sentStatus{}}
}

// delivered notes that the control plane took a status.
func (d *deliveryCounts) delivered(status observe.Status, counts outbox.DeliveryCounts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent[status.Workload] = sentStatus{status, counts}
}

// refresh sends those statuses again whose counts have changed. If a newer status is pending it will have the right counts.
func (d *deliveryCounts) refresh() {
	d.mu.Lock()
	sent := maps.Clone(d.sent)
	d.mu.Unlock()
	for instance, last := range sent {
		state := d.box.State(last.status)
		switch {
		case state.Phase == outbox.Unknown:
			d.forget(instance, last)
		case d.box.DeliveryCounts(instance) != last.counts:
			d.box.Resend(last.status, state.Receipt)
		}
	}
}

// forget drops an instance that the outbox no longer knows, unless another status was sent in the meantime.
func (d *deliveryCounts) forget(instance target.Instance, last sentStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sent[instance] == last {
		delete(d.sent, instance)
	}
}
