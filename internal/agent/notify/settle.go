package notify

import (
	"context"
	"errors"
	"fmt"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// settle settles an item by its result. It decides whether a report is sent again; the breaker of package outbox decides
// when.
//
//	the error                                       the item
//	none                                            Ack: delivered
//	404 of the API, not_found in a report set:
//	- the control plane had the row before          AckRemoved: discarded
//	- the watch of the instance has ended           AckRemoved
//	- it never had the row                          Refuse: sent again; other instances do not wait
//	- it is not clear which row                     Defer, until the status of the instance is answered
//	another 4xx, invalid in a set                   Reject: a dead letter, not sent again
//	a report that cannot be encoded                 Reject
//	forbidden, of an instance                       Refuse: sent again; other instances do not wait
//	quota_exceeded in a set                         Refuse: sent again; other reports do not wait
//	401, another 403                                Nack: sent again; the whole delivery pauses
//	network, 5xx, 408, 425, 429, a proxy's 4xx      Nack: sent again
//	[ErrNotReady]                                   Defer: sent again, and no failure of the delivery
//	[ErrIncomplete]                                 Defer, without a wait
//	[ErrProtocolChanged]                            Requeue: sent again at once
//	any, after the context has ended                Nack: pending at the next start
//
// [threeport.Error.Kind] has the exact status codes. The mutex keeps the order of log lines the same as that of settlements.
func (n *Notifier) settle(ctx context.Context, item outbox.Item, result Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := result.Err
	if ctx.Err() != nil && err != nil {
		n.outbox.Nack(item, outbox.Failure{Cause: err}) // cancelled; Run counts what remains
		return
	}
	if n.settleUnsent(item, err) {
		return
	}
	switch kind := threeport.KindOf(err); kind {
	case threeport.KindNone:
		n.outbox.Ack(item, result.Receipt)
		n.metrics.accepted(item)
	case threeport.KindNotFound:
		n.notFound(item, err)
	case threeport.KindPermanent:
		n.outbox.Reject(item, err)
		n.metrics.count(item, resultRejected)
		n.logItem("The control plane rejected a report. It is not sent again.", item, err)
	case threeport.KindForbidden:
		n.metrics.count(item, resultNotAssigned)
		if n.outbox.Refuse(item, target.NotAssigned, err) {
			n.warnItem("The control plane has not assigned a workload to this cluster. Its reports are kept and sent again.", item, err)
		}
	case threeport.KindQuotaExceeded:
		n.metrics.count(item, resultRetried)
		if n.outbox.Refuse(item, target.QuotaExceeded, err) {
			n.logItem("The cluster has used up its space on the control plane. The report is kept and sent again.", item, err)
		}
	case threeport.KindRetryable, threeport.KindUnauthorized:
		n.fail(item, err, kind)
		return
	}
	if n.failing && n.outbox.Failing() == 0 {
		n.failing, n.refused = false, false
		n.log.Info("Delivery recovered")
	}
}

// settleUnsent settles an item that was not sent, and reports whether this is one.
func (n *Notifier) settleUnsent(item outbox.Item, err error) bool {
	switch {
	case errors.Is(err, ErrNotReady):
		n.deferItem(item, err)
	case errors.Is(err, ErrIncomplete):
		n.outbox.Defer(item, 0, nil)
	case errors.Is(err, ErrProtocolChanged):
		n.outbox.Requeue(item)
	default:
		return false
	}
	return true
}

// notFound settles an item without a row. A row that was removed does not come back. A row that never was may be created
// later, or the ID in the ThreeportWorkload is wrong.
func (n *Notifier) notFound(item outbox.Item, err error) {
	if observe.EndsWatch(item.Report) { // the row of a deleted workload is usually removed with it
		n.outbox.AckRemoved(item, outbox.MissingRow{Removed: true})
		n.metrics.count(item, resultGone)
		return
	}
	missing := n.outbox.MissingRow(item)
	if missing.Unclear {
		n.deferItem(item, fmt.Errorf("%w: the control plane has not answered the status of the instance yet", ErrNotReady))
		return
	}
	refusal, row := target.UnknownInstance, item.Report.Instance().String()
	if missing.Resource != 0 {
		refusal, row = target.UnknownResource, fmt.Sprintf("WorkloadResourceInstance %d", missing.Resource)
	}
	if missing.Removed {
		n.metrics.count(item, resultGone)
		if n.outbox.AckRemoved(item, missing) {
			n.warnItem("The control plane removed "+row+". Reports about it are discarded.", item, err)
		}
		return
	}
	n.metrics.count(item, resultUnknown)
	cause := fmt.Errorf("the control plane has no %s: check the ID in the ThreeportWorkload, or create the row", row)
	if n.outbox.Refuse(item, refusal, cause) {
		n.warnItem("The control plane does not know "+row+". The reports are kept and sent again.", item, err)
	}
}

// deferItem gives an item back that cannot be sent yet.
func (n *Notifier) deferItem(item outbox.Item, err error) {
	n.outbox.Defer(item, deferDelay, err)
	n.log.V(1).Info("A report cannot be sent yet. It is tried again.", logValues(item, err)...)
}

// fail gives an item back to be sent again. An outage has one line, and another one if the control plane refuses the credentials later.
func (n *Notifier) fail(item outbox.Item, err error, kind threeport.Kind) {
	unauthorized := kind == threeport.KindUnauthorized
	n.outbox.Nack(item, outbox.Failure{Cause: err, RetryAfter: threeport.RetryAfter(err), General: unauthorized})
	n.metrics.count(item, resultRetried)
	if n.refused || n.failing && !unauthorized {
		return
	}
	n.failing, n.refused = true, unauthorized
	if unauthorized {
		n.logItem("The control plane refuses the agent's credentials. They are read again, and reports are kept.", item, err)
	} else {
		n.logItem("Delivery fails. Reports are kept and sent again.", item, err)
	}
}

func (n *Notifier) logItem(message string, item outbox.Item, err error) {
	n.log.Info(message, logValues(item, err)...)
}

// warnItem logs at the level warn of zap. A logr.Logger has no such level, but its sink has.
func (n *Notifier) warnItem(message string, item outbox.Item, err error) {
	const warn = -1
	if sink := n.log.GetSink(); sink != nil && sink.Enabled(warn) {
		sink.Info(warn, message, logValues(item, err)...)
	}
}

func logValues(item outbox.Item, err error) []any {
	values := []any{"report", item.Report.String(), "instance", item.Report.Instance().String(), "error", err.Error()}
	if span := observe.SpanOf(item.Report); span != nil {
		values = append(values, "trace_id", span.SpanContext().TraceID().String())
	}
	return values
}
