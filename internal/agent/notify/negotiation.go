package notify

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// NegotiatingSender sends in report sets while the control plane takes them, and else in requests of version v0. The
// outbox has the protocol that is used: it starts with v0, and the sender changes it.
type NegotiatingSender struct {
	box      *outbox.Outbox
	client   *threeport.Client
	v0       *V0Sender
	sets     *setSender
	counts   *deliveryCounts
	agent    *agentState
	schedule *schedule
	log      logr.Logger

	probed    chan struct{} // closed after the first probe
	probeOnce sync.Once
	// Only for Run:
	heartbeatFails bool      // the last heartbeat failed
	ready          bool      // see AgentInfo.Ready
	readyAt        time.Time // it counts as ready from then on
}

// NewNegotiatingSender returns a sender for the reports of an outbox. Nothing is sent before [NegotiatingSender.Run] has
// asked for the control plane's protocols.
func NewNegotiatingSender(
	client *threeport.Client, box *outbox.Outbox, info AgentInfo, registry prometheus.Registerer, log logr.Logger,
) *NegotiatingSender {
	n := &NegotiatingSender{
		box: box, client: client, v0: NewV0Sender(client), counts: newDeliveryCounts(box),
		agent: &agentState{info: info, box: box}, schedule: &schedule{intervals: defaultIntervals()}, log: log,
		probed: make(chan struct{}),
	}
	n.sets = &setSender{
		client: client, metrics: newSetMetrics(registry, n.inSets), single: n.v0, agent: n.agent.describe, counts: n.counts,
	}
	return n
}

func (n *NegotiatingSender) inSets() bool { return n.box.Protocol() == ProtocolReportSets }

// MaxBatch is how many reports are taken at a time.
func (n *NegotiatingSender) MaxBatch() int {
	if n.inSets() {
		return n.sets.MaxBatch()
	}
	return 1
}

// Send delivers reports in the current protocol. The error is [ErrProtocolChanged] for a report that has to be sent in
// another one.
func (n *NegotiatingSender) Send(ctx context.Context, items []outbox.Item) []Result {
	select {
	case <-n.probed:
	case <-ctx.Done():
	}
	if !n.inSets() {
		return n.sendV0(ctx, items)
	}
	results := n.sets.Send(ctx, items)
	for _, r := range results {
		if errors.Is(r.Err, ErrProtocolChanged) {
			n.downgrade()
			break
		}
	}
	return results
}

// sendV0 sends reports one by one. Those that were taken for a report set may have no place in v0.
func (n *NegotiatingSender) sendV0(ctx context.Context, items []outbox.Item) []Result {
	out := make([]Result, len(items))
	for i, item := range items {
		if _, ok := ProtocolV0.Version(item.Report); ok {
			out[i].Receipt, out[i].Err = sendTraced(ctx, n.v0, item)
		} else {
			out[i].Err = ErrProtocolChanged
		}
	}
	return out
}

// Run probes for report sets, sends heartbeats and keeps delivery counts up to date until the context ends. During an
// outage it sends nothing of its own: the outbox probes with reports.
func (n *NegotiatingSender) Run(ctx context.Context) {
	defer n.probeOnce.Do(func() { close(n.probed) })
	n.probe(ctx)
	n.probeOnce.Do(func() { close(n.probed) })
	n.readyAt = time.Now().Add(readyTime)
	tick, recount := time.NewTicker(n.schedule.tick), time.NewTicker(n.schedule.recount)
	defer tick.Stop()
	defer recount.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-recount.C:
			if n.inSets() {
				n.counts.refresh()
			}
		case <-tick.C:
			n.poll(ctx)
		}
	}
}

// poll sends what is due: a heartbeat or a probe.
func (n *NegotiatingSender) poll(ctx context.Context) {
	switch {
	case n.box.Suspended():
	case n.inSets():
		if n.isReady() {
			n.heartbeat(ctx)
		}
		if n.schedule.isDue() {
			n.askFeatures(ctx)
		}
	case n.schedule.isDue():
		n.probe(ctx)
	}
}

// isReady reports whether the agent has been ready once, or had time for it.
func (n *NegotiatingSender) isReady() bool {
	n.ready = n.ready || n.agent.info.Ready == nil || n.agent.info.Ready() || time.Now().After(n.readyAt)
	return n.ready
}

// heartbeat sends a heartbeat if one is due. It logs the first failure, because an agent without pending reports has no other
// sign of an outage or of credentials that are no longer valid.
func (n *NegotiatingSender) heartbeat(ctx context.Context) {
	sent, err := n.sets.heartbeat(ctx, n.schedule.heartbeat)
	switch {
	case !sent || ctx.Err() != nil:
	case isUnsupported(err):
		n.downgrade()
	case err != nil && !n.heartbeatFails:
		n.heartbeatFails = true
		n.log.Info("The heartbeat fails. The control plane shows this agent as offline until one succeeds.", "error", err.Error())
	case err == nil && n.heartbeatFails:
		n.heartbeatFails = false
		n.log.Info("The heartbeat succeeds again.")
	}
}

// isUnsupported reports whether an error says that the control plane has no report sets.
func isUnsupported(err error) bool {
	status := threeport.StatusOf(err)
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// probe asks whether the control plane takes report sets, and upgrades if it does.
func (n *NegotiatingSender) probe(ctx context.Context) {
	offer, err := n.client.ReportSetVersions(ctx)
	if err == nil && offer.Takes() {
		if err = n.agent.identify(ctx); err != nil && ctx.Err() == nil {
			n.log.Info("The cluster's UID cannot be read. Reports are sent one by one until it can.", "error", err.Error())
		}
	}
	if ctx.Err() != nil {
		return
	}
	n.schedule.probed(err)
	switch {
	case err != nil:
		n.log.V(1).Info("The probe for report sets failed. Reports are sent one by one.", "error", err.Error())
	case offer.Takes():
		n.schedule.upgrade()
		n.sets.configure(offer)
		n.box.SetProtocol(ProtocolReportSets)
		n.log.Info("The control plane takes report sets.", "encoding", offer.Encoding())
	}
}

// askFeatures asks for the features of a control plane that takes report sets. One that no longer takes them refuses the next
// set.
func (n *NegotiatingSender) askFeatures(ctx context.Context) {
	offer, err := n.client.ReportSetVersions(ctx)
	if ctx.Err() != nil {
		return
	}
	n.schedule.probed(err)
	if err == nil && offer.Takes() {
		n.sets.reconfigure(offer)
	}
}

// downgrade goes back to v0.
func (n *NegotiatingSender) downgrade() {
	if !n.box.SetProtocol(ProtocolV0) {
		return // a concurrent request was answered in the same way
	}
	wait := n.schedule.downgrade()
	n.log.Info("The control plane no longer takes report sets. Reports are sent one by one.", "nextProbeIn", wait.String())
}
