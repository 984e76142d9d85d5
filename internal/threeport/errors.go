package threeport

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Kind is what a caller has to do about an error.
type Kind int

// The kinds of failure.
const (
	// KindNone is the kind of a nil error.
	KindNone Kind = iota
	// KindRetryable may pass later: network errors, 408, 425, 429, 5xx, answers
	// that are not the API's. In v0 a 500 may also be permanent (bad input, a
	// missing parent). The outbox quarantines a report that keeps failing.
	KindRetryable
	// KindUnauthorized is 401, or 403 without a problem code: the credentials, not the report.
	KindUnauthorized
	// KindNotFound is the API's own 404: the row does not exist or is deleted.
	KindNotFound
	// KindPermanent will fail again however often it is repeated.
	KindPermanent
	// KindForbidden is the refusal of an instance that is not assigned to the agent's cluster. It may be assigned at any
	// time. Reports on other instances are not affected.
	KindForbidden
	// KindQuotaExceeded is the rejection of a report because the cluster has used up its space. Smaller reports may be accepted.
	KindQuotaExceeded
)

// String is the kind's name as it appears in logs and metrics.
func (k Kind) String() string {
	switch k {
	case KindNone:
		return "none"
	case KindRetryable:
		return "retryable"
	case KindUnauthorized:
		return "unauthorized"
	case KindNotFound:
		return "not found"
	case KindPermanent:
		return "permanent"
	case KindForbidden:
		return "forbidden"
	case KindQuotaExceeded:
		return "quota exceeded"
	default:
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
}

// Error is the failure of one request.
type Error struct {
	// Op is what was being done, such as "create workload event".
	Op string

	// StatusCode of the answer; 0 when there was none.
	StatusCode int

	// Message is the server's Status.error, or a problem's detail, shortened, or the reason why the
	// request was not sent or its answer not understood. No other part of a body
	// is ever in it.
	Message string

	// RetryAfter is how long the server asked to be left alone; 0 when it did not.
	RetryAfter time.Duration

	// Foreign is set for an answer without the API's envelope: a proxy's, or
	// the router's for a path it does not serve. It says nothing about the
	// row that was asked for. Only a foreign 413 is about the report.
	Foreign bool

	// Unsendable is set when the request was refused by the client itself.
	Unsendable bool

	// Problem is the code of a fault in one report of a set, such as [ProblemInvalid], where the set itself was answered. It
	// is also that of a refused request: see [ProblemHeader].
	Problem string

	// Err is the cause when there was no whole answer; it keeps
	// errors.Is(err, context.Canceled) working.
	Err error
}

// Error names the operation, the status and the server's reason.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.StatusCode != 0 {
		fmt.Fprintf(&b, ": HTTP %d", e.StatusCode)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	var request *url.Error
	switch {
	case errors.As(e.Err, &request) && request.Timeout():
		b.WriteString(": " + request.URL + " did not answer in time")
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap is the cause of a network error.
func (e *Error) Unwrap() error { return e.Err }

// Kind says what to do about the error.
func (e *Error) Kind() Kind {
	switch code := e.StatusCode; {
	case e.Problem == ProblemNotFound:
		return KindNotFound
	case e.Problem == ProblemForbidden:
		return KindForbidden
	case e.Problem == ProblemQuota:
		return KindQuotaExceeded
	case e.Unsendable, e.Problem != "":
		return KindPermanent
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return KindUnauthorized
	case e.Foreign && code != http.StatusRequestEntityTooLarge:
		return KindRetryable // a proxy answered: retry until it routes to the API
	case code == http.StatusNotFound:
		return KindNotFound
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return KindRetryable
	case code >= 400 && code < 500:
		return KindPermanent
	default:
		return KindRetryable
	}
}

// KindOf is the kind of the [*Error] in err's chain. Errors of other packages are retryable.
func KindOf(err error) Kind {
	if err == nil {
		return KindNone
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind()
	}
	return KindRetryable
}

// StatusOf is the HTTP status of the answer in err's chain; 0 if there was none.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.StatusCode
	}
	return 0
}

// RetryAfter is the pause the server asked for, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// maxRetryAfter bounds the pause that a server can ask for. One wrong answer, such as that of a proxy, must not stop all deliveries for
// longer. It also keeps the multiplication below from overflowing.
const maxRetryAfter = 5 * time.Minute

// parseRetryAfter reads both forms of RFC 9110 section 10.2.3: seconds, or an
// HTTP date. It returns 0 for any other text.
func parseRetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		seconds = min(max(seconds, 0), int64(maxRetryAfter/time.Second))
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// maxMessage is how much of the server's error text is kept, in bytes: enough
// for a list of field names, too little to carry a body.
const maxMessage = 256

// shorten makes a server's text fit for a log line: one line, bounded.
func shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
