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

// The bounds of a set. How many reports are in one is found out: half as many after each failure, twice as many after
// each full one that arrived, so that a slow line or one report that makes the server fail does not stop all others.
const (
	firstSet     = 64
	mostReports  = 500
	mostSetBytes = 1 << 20
)

// sets delivers reports in sets, to a control plane that takes these.
type sets struct {
	client  *threeport.Client
	metrics *LinkMetrics
	single  Single                 // writes a row whatever it has
	agent   func() threeport.Agent // who tells, at this moment
	clock   clock

	mu       sync.Mutex
	most     int
	limit    int // of reports
	bytes    int // of a body
	encoding string
	sent     time.Time // when the last set arrived
	quiet    time.Time // until when there is no heartbeat
}

// offered takes over what the control plane offers.
func (s *sets) offered(v threeport.ReportSetVersions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.bytes, s.encoding = mostReports, mostSetBytes, v.Encoding()
	if v.MaxReports > 0 {
		s.limit = min(s.limit, v.MaxReports)
	}
	if v.MaxBytes > 0 { // sizes are estimates
		s.bytes = int(min(int64(s.bytes), v.MaxBytes/2))
	}
	s.most = min(firstSet, s.limit)
}

// MaxBatch is how many reports are taken at a time.
func (s *sets) MaxBatch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.most, 1)
}

// parcel is a report with its place among the items. Clocked is true if its version is the clock's.
type parcel struct {
	at      int
	report  threeport.Report
	clocked bool
}

// delivery is one call of Send.
type delivery struct {
	*sets
	items   []outbox.Item
	results []Result
}

// Send delivers reports in as few sets as the bounds allow. What has to be written over something is not part of a set.
func (s *sets) Send(ctx context.Context, items []outbox.Item) []Result {
	d := delivery{s, items, make([]Result, len(items))}
	var set []parcel
	size := 0
	for i, item := range items {
		if isForRow(item) {
			d.results[i].Receipt, d.results[i].Err = s.single.Send(ctx, item)
			continue
		}
		report, clocked, err := reportOf(item, &s.clock)
		if err != nil {
			d.results[i].Err = err
			continue
		}
		n := sizeOf(report)
		if len(set) > 0 && size+n > s.room() {
			d.post(ctx, set, false)
			set, size = set[:0], 0
		}
		set, size = append(set, parcel{i, report, clocked}), size+n
	}
	if len(set) > 0 {
		d.post(ctx, set, false)
	}
	return d.results
}

// isForRow reports whether a report is to be written to its row whatever that has: because somebody else changed it, or
// because it is about an object of which nothing but the row is known.
func isForRow(item outbox.Item) bool {
	op, isOperation := item.Report.(observe.Operation)
	return item.Repair && !isWhole(item.Report) || isOperation && op.Object.UID == ""
}

// isWhole reports whether a report replaces whatever is there of its key.
func isWhole(r observe.Report) bool {
	switch r.(type) {
	case observe.Status, observe.Tree:
		return true
	}
	return false
}

// room is how many bytes a set may have now: fewer while it may have but few reports.
func (s *sets) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	const least = 64 << 10
	return max(s.bytes*s.most/max(s.limit, 1), min(least, s.bytes))
}

// post sends a set and files the results. Again is true for one that was found to be stale before.
func (d delivery) post(ctx context.Context, set []parcel, again bool) {
	reports := make([]threeport.Report, len(set))
	for i, p := range set {
		reports[i] = p.report
	}
	answer, err := d.exchange(ctx, reports)
	if err == nil {
		d.file(ctx, set, answer, again)
		return
	}
	switch status := threeport.StatusOf(err); {
	case isOtherWay(err):
		err = ErrProtocolChanged
	case status == http.StatusRequestEntityTooLarge && len(set) > 1, threeport.KindOf(err) == threeport.KindPermanent && len(set) > 1:
		// One of them is too much, or is more than a server of this version understands: the others are not to suffer.
		half := len(set) / 2
		d.post(ctx, set[:half], again)
		d.post(ctx, set[half:], again)
		return
	}
	for _, p := range set {
		d.results[p.at].Err = err
	}
}

// exchange sends a set, once more without an encoding if that is not taken, and learns how large sets may be.
func (s *sets) exchange(ctx context.Context, reports []threeport.Report) (threeport.ReportSetAnswer, error) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.sent = time.Now()
		if len(reports) >= s.most {
			s.most = min(2*s.most, s.limit)
		}
	case ctx.Err() == nil && len(reports) > 1:
		s.most = max(min(s.most, len(reports))/2, 1)
	}
	return answer, err
}

// errStale says that the control plane calls a status or tree old, whatever its version.
var errStale = errors.New("the control plane has a newer version than this agent's clock can give")

// file turns the answers into results. Where the control plane has a newer version of an object or Event, all is well. If it
// was the clock that gave the version, it is behind: the report is sent once more, with one that is not.
func (d delivery) file(ctx context.Context, set []parcel, answer threeport.ReportSetAnswer, again bool) {
	var stale []parcel
	for i, p := range set {
		item, got := d.items[p.at], answer.Items[i]
		result := Result{receiptOf(item, got), got.Err()}
		if got.Outcome == threeport.OutcomeStale && p.clocked {
			d.clock.raise(got.Version)
			p.report.Version = d.clock.next()
			stale = append(stale, p)
			if isWhole(item.Report) {
				result.Err = errStale
			}
		}
		d.results[p.at] = result
	}
	if len(stale) > 0 && !again {
		d.post(ctx, stale, true)
	}
}

// receiptOf returns the receipt of a report that was answered.
func receiptOf(item outbox.Item, got threeport.ReportAnswer) outbox.Receipt {
	receipt := item.Receipt
	if _, isEvent := item.Report.(observe.Event); isEvent && got.Outcome == threeport.OutcomeCreated {
		receipt.RowID, receipt.Instance = 0, item.Report.Instance() // its row has an ID that sets do not tell
	}
	return receipt
}

// beat tells that the agent is there, if no set has told it for a while.
func (s *sets) beat(ctx context.Context, every time.Duration) error {
	now := time.Now()
	s.mu.Lock()
	due := now.Sub(s.sent) >= every && !now.Before(s.quiet)
	if due {
		s.quiet = now.Add(every / 3) // for if it fails
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	_, err := s.exchange(ctx, nil)
	if wait := threeport.RetryAfter(err); wait > 0 {
		s.mu.Lock()
		s.quiet = now.Add(wait)
		s.mu.Unlock()
	}
	return err
}
