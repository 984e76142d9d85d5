package notify

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// setSender delivers report sets.
type setSender struct {
	client  *threeport.Client
	metrics *setMetrics
	single  Single                 // overwrites rows
	agent   func() threeport.Agent // describes the agent at this moment
	counts  *deliveryCounts
	clock   clock
	bounds  setBounds

	mu         sync.Mutex
	encoding   string
	features   []string  // that the control plane accepts
	lastSent   time.Time // when the last set was answered
	quietUntil time.Time // no heartbeat before
}

// configure sets the limits of the control plane.
func (s *setSender) configure(v threeport.ReportSetVersions) {
	s.bounds.configure(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encoding, s.features = v.Encoding(), v.Features
}

// reconfigure sets the features of the control plane, which may have been upgraded.
func (s *setSender) reconfigure(v threeport.ReportSetVersions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.features = v.Features
}

// accepted returns the features that the control plane accepts.
func (s *setSender) accepted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.features
}

// dropFeatures removes the fields of features from a report that was refused, and reports whether there were any. Unless the report
// was too large, the next ones have none either: an earlier release may have replaced the control plane.
func (s *setSender) dropFeatures(report threeport.Report, refused error) bool {
	tooLarge := threeport.StatusOf(refused) == http.StatusRequestEntityTooLarge
	if tooLarge {
		report.Traceparent = "" // the next try has it again
	}
	if !report.Keep(nil) {
		return false
	}
	if !tooLarge {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.features = nil
	}
	return true
}

// MaxBatch is how many reports Send takes at the moment.
func (s *setSender) MaxBatch() int { return s.bounds.reportLimit() }

// pendingReport is a report with the index of its item. The version is local if it comes from the agent's clock.
type pendingReport struct {
	index        int
	report       threeport.Report
	localVersion bool
}

// setDelivery is one call of Send.
type setDelivery struct {
	*setSender
	items   []outbox.Item
	results []Result
}

// Send delivers reports in as few sets as the bound of bytes allows; the caller bounds their number by MaxBatch. A report that has to
// overwrite its row is sent in v0.
func (s *setSender) Send(ctx context.Context, items []outbox.Item) []Result {
	d := setDelivery{s, items, make([]Result, len(items))}
	var set []pendingReport
	size := 0
	for i, item := range items {
		if isForRow(item) {
			d.results[i].Receipt, d.results[i].Err = sendTraced(ctx, s.single, item)
			continue
		}
		report, localVersion, err := reportOf(ctx, item, &s.clock)
		if err != nil {
			d.results[i].Err = err
			continue
		}
		if status := report.Status; status != nil {
			counts := s.counts.box.DeliveryCounts(item.Report.Instance())
			status.Pending, status.Rejected, status.Dropped = counts.Pending, counts.Rejected, counts.Dropped
		}
		report.Keep(d.accepted())
		n := sizeOf(report)
		if len(set) > 0 && size+n > s.bounds.byteLimit() {
			d.post(ctx, set, false)
			set, size = set[:0], 0
		}
		set, size = append(set, pendingReport{i, report, localVersion}), size+n
	}
	if len(set) > 0 {
		d.post(ctx, set, false)
	}
	return d.results
}

// isForRow reports whether a report has to overwrite its row, whatever version the row has. Either somebody else changed
// the row, or nothing but the row is known of the object.
func isForRow(item outbox.Item) bool {
	op, isOperation := item.Report.(observe.Operation)
	return item.Repair && !observe.IsSnapshot(item.Report) || isOperation && op.Object.UID == ""
}

// post sends a set and files the results. Again is true for reports that were stale in an earlier set.
func (d setDelivery) post(ctx context.Context, set []pendingReport, again bool) {
	reports := make([]threeport.Report, len(set))
	var spans requestSpans
	for i, p := range set {
		if span := spans.start(d.items[p.index], len(set)); span != nil {
			p.report.SetTrace(ctx, span.SpanContext())
			p.report.Keep(d.accepted())
		}
		reports[i] = p.report
	}
	answer, err := d.exchange(spans.context(ctx), reports)
	spans.end(err)
	if err == nil {
		d.file(ctx, set, answer, again)
		return
	}
	switch status := threeport.StatusOf(err); {
	case isUnsupported(err):
		err = ErrProtocolChanged
	case status == http.StatusRequestEntityTooLarge && len(set) > 1, threeport.KindOf(err) == threeport.KindPermanent && len(set) > 1:
		// One of them is too large, or unknown to a server of this version. The halves isolate it from the others.
		half := len(set) / 2
		d.post(ctx, set[:half], again)
		d.post(ctx, set[half:], again)
		return
	case threeport.KindOf(err) == threeport.KindPermanent && d.dropFeatures(reports[0], err):
		d.post(ctx, set, again)
		return
	}
	for _, p := range set {
		d.results[p.index].Err = err
	}
}

// exchange sends a set, again without an encoding if that is refused, and adapts the size of the next sets.
func (s *setSender) exchange(ctx context.Context, reports []threeport.Report) (threeport.ReportSetAnswer, error) {
	s.mu.Lock()
	encoding := s.encoding
	s.mu.Unlock()
	set := threeport.ReportSet{Agent: s.agent(), Reports: reports}
	answer, err := s.client.SendReportSet(ctx, set, encoding)
	if encoding != "" && threeport.StatusOf(err) == http.StatusUnsupportedMediaType {
		s.mu.Lock()
		s.encoding = ""
		s.mu.Unlock()
		answer, err = s.client.SendReportSet(ctx, set, "")
	}
	s.metrics.set(len(reports), err)
	switch {
	case err == nil:
		s.bounds.answered(len(reports))
		s.mu.Lock()
		s.lastSent = time.Now()
		s.mu.Unlock()
	case ctx.Err() == nil:
		s.bounds.failed(len(reports))
	}
	return answer, err
}

// errStale is the error of a status or tree that is older than the one of the control plane, even in a new version.
var errStale = errors.New("the control plane has a newer version than this agent's clock can give")

// file turns the answers into results. A stale object or Event is a success: the control plane has a newer version. If a
// local version is stale, the clock is behind: it is advanced, and the report is sent once more.
func (d setDelivery) file(ctx context.Context, set []pendingReport, answer threeport.ReportSetAnswer, again bool) {
	var stale []pendingReport
	for i, p := range set {
		item, got := d.items[p.index], answer.Items[i]
		result := Result{receiptOf(item, got), got.Err()}
		if got.Outcome == threeport.OutcomeStale && p.localVersion {
			d.clock.advance(got.Version)
			p.report.Version = d.clock.next()
			stale = append(stale, p)
			if observe.IsSnapshot(item.Report) {
				result.Err = errStale
			}
		}
		if sent := p.report.Status; sent != nil && result.Err == nil {
			d.counts.delivered(item.Report.(observe.Status), outbox.DeliveryCounts{Pending: sent.Pending, Rejected: sent.Rejected, Dropped: sent.Dropped})
		}
		d.results[p.index] = result
	}
	if len(stale) > 0 && !again {
		d.post(ctx, stale, true)
	}
}

// receiptOf returns the receipt for an answer.
func receiptOf(item outbox.Item, got threeport.ReportAnswer) outbox.Receipt {
	receipt := item.Receipt
	if _, isEvent := item.Report.(observe.Event); isEvent && got.Outcome == threeport.OutcomeCreated {
		receipt.RowID, receipt.Instance = 0, item.Report.Instance() // answers to sets do not have the IDs of rows
	}
	return receipt
}

// heartbeat sends an empty set if none was sent for a while. It reports whether it did.
func (s *setSender) heartbeat(ctx context.Context, every time.Duration) (sent bool, err error) {
	now := time.Now()
	s.mu.Lock()
	due := now.Sub(s.lastSent) >= every && !now.Before(s.quietUntil)
	if due {
		s.quietUntil = now.Add(every / 3) // in case it fails
	}
	s.mu.Unlock()
	if !due {
		return false, nil
	}
	_, err = s.exchange(ctx, nil)
	if wait := threeport.RetryAfter(err); wait > 0 {
		s.mu.Lock()
		s.quietUntil = now.Add(wait)
		s.mu.Unlock()
	}
	return true, err
}
