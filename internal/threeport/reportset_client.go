package threeport

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

const (
	reportSetsPath        = "/v0/workload-report-sets"
	reportSetVersionsPath = "/workload-report-sets/versions"
)

// Takes reports whether the server takes report sets in the version of this package.
func (v ReportSetVersions) Takes() bool { return slices.Contains(v.Versions, "v0") }

// Encoding returns the best of the offered encodings that this package supports; empty for none.
func (v ReportSetVersions) Encoding() string {
	for _, encoding := range []string{EncodingZstd, EncodingGzip} {
		if slices.Contains(v.Encodings, encoding) {
			return encoding
		}
	}
	return ""
}

// ReportSetVersions returns what report sets the server takes. A server without report sets takes none, which is no error.
func (c *Client) ReportSetVersions(ctx context.Context) (ReportSetVersions, error) {
	q := request{op: "find report sets", method: http.MethodGet, path: reportSetVersionsPath, objects: 1, maxAnswer: 64 << 10}
	offer, err := ask[ReportSetVersions](ctx, c, q, nil)
	if code := StatusOf(err); code == http.StatusNotFound || code == http.StatusMethodNotAllowed {
		return ReportSetVersions{}, nil
	}
	return offer, err
}

// maxCommas bounds the commas of an object in an answer that is not in v0.
const maxCommas = 100

// ask makes a request to an endpoint that is not in v0, and decodes the answer.
func ask[T any](ctx context.Context, c *Client, q request, body []byte) (T, error) {
	var none, out T
	got, err := c.exchange(ctx, q, body)
	defer got.release()
	switch code := got.status; {
	case err != nil && code < 400:
		return none, &Error{Op: q.op, StatusCode: code, Err: err}
	case code < 200 || code >= 300:
		return none, refusal(q, got)
	}
	if bytes.Count(got.body, []byte("{")) > q.objects || HasMoreCommas(got.body, maxCommas*q.objects) {
		return none, malformed(q, got.status)
	}
	if err := json.Unmarshal(got.body, &out); err != nil {
		return none, malformed(q, got.status)
	}
	return out, nil
}

// SendReportSet sends a set, in an encoding if it is not empty and makes the body smaller. Each report has to come from
// [Report.Clean]. The answer has an item for each report.
//
// A set can be repeated without harm. Some errors have a [StatusOf] with a meaning:
//
//   - 404 and 405: the server no longer takes sets.
//   - 413: it takes smaller sets only.
//   - 415: it does not take this encoding.
func (c *Client) SendReportSet(ctx context.Context, set ReportSet, encoding string) (ReportSetAnswer, error) {
	q := request{op: "send report set", method: http.MethodPost, path: reportSetsPath}
	q.objects = 1 + 4*len(set.Reports) // each item has at most a problem, whose text is without braces
	q.maxAnswer = 64<<10 + len(set.Reports)<<11
	if set.Reports == nil {
		set.Reports = []Report{}
	}
	body, err := encode(set)
	if err != nil {
		return ReportSetAnswer{}, &Error{Op: q.op, Unsendable: true, Err: err}
	}
	body, q.encoding = compress(cleanJSON(body), encoding)
	answer, err := ask[ReportSetAnswer](ctx, c, q, body)
	if err == nil && !answer.fits(set) {
		return ReportSetAnswer{}, malformed(q, http.StatusOK)
	}
	return answer, err
}

// fits reports whether each report has an answer with a known outcome.
func (a ReportSetAnswer) fits(set ReportSet) bool {
	if len(a.Items) != len(set.Reports) {
		return false
	}
	for _, item := range a.Items {
		switch item.Outcome {
		case OutcomeCreated, OutcomeUpdated, OutcomeUnchanged, OutcomeStale:
		case OutcomeRejected:
			if item.Problem == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// Err returns the failure of a report; nil if the control plane has the report or a newer one.
func (a ReportAnswer) Err() error {
	if a.Problem == nil || a.Outcome != OutcomeRejected {
		return nil
	}
	return &Error{Op: "send report", Message: shorten(a.Problem.Detail), Problem: a.Problem.Code}
}

// refusal returns the error for an answer without success.
func refusal(q request, got answer) *Error {
	var problem struct{ Title, Detail string }
	bad := json.Unmarshal(got.body, &problem)
	text := problem.Detail
	if text == "" {
		text = problem.Title
	}
	return &Error{
		Op:         q.op,
		StatusCode: got.status,
		Message:    shorten(text),
		RetryAfter: parseRetryAfter(got.header.Get("Retry-After"), time.Now()),
		Foreign:    bad != nil || text == "",
		Problem:    problemOf(got),
	}
}
