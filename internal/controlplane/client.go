package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/go-resty/resty/v2"
)

// maxAnswer bounds the answer that is read, in bytes. The largest one repeats a
// RuntimeDefinition and a JSONDefinition, and Kubernetes has no objects above
// 3 MiB.
const maxAnswer = 16 << 20

// Client makes requests of the control-plane API. It is safe for concurrent use.
type Client struct {
	http *resty.Client
}

// New makes a client from a valid configuration. It reads the certificate and
// token files, so that a missing one is found at the start, and sends nothing.
func New(config Config) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	base, err := config.baseURL()
	if err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	transport, err := newCredentials(config, base.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	// resty's own retries stay off (its default): repeating is the caller's.
	client := resty.NewWithClient(&http.Client{
		Transport: transport,
		Timeout:   config.Timeout,
		// A redirected POST or PATCH arrives as a GET, whose success would look
		// like a delivery.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).
		SetBaseURL(base.String()).
		SetHeader("Accept", "application/json").
		SetHeader("User-Agent", "threeport-agent").
		SetDoNotParseResponse(true).
		SetDisableWarn(true).
		SetLogger(discard{})
	return &Client{http: client}, nil
}

// Close ends the connections kept alive. Requests under way are not disturbed.
func (c *Client) Close() {
	c.http.GetClient().CloseIdleConnections()
}

// discard keeps resty from writing to standard error: every failure is
// returned, and logged once by who handles it.
type discard struct{}

func (discard) Errorf(string, ...any) {}
func (discard) Warnf(string, ...any)  {}
func (discard) Debugf(string, ...any) {}

// request is one call: what is asked, and how its failure is told.
type request struct {
	op     string // for the error, such as "create workload event"
	method string
	path   string
	query  map[string]string
	body   any // nil for none
}

// send makes one request and returns the rows of its answer, and the HTTP status.
func send[T any](ctx context.Context, c *Client, q request) ([]T, int, error) {
	// A request that never got a connection was not applied.
	var reached atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }}

	req := c.http.R().SetContext(httptrace.WithClientTrace(ctx, trace)).SetQueryParams(q.query)
	if q.body != nil {
		body, err := encode(q.body)
		if err != nil {
			return nil, 0, &Error{Op: q.op, Unsendable: true, Err: err}
		}
		req.SetHeader("Content-Type", "application/json").SetBody(body)
	}
	creates := q.method == http.MethodPost

	answer, err := req.Execute(q.method, q.path)
	status := 0
	var body []byte
	if answer != nil && answer.RawResponse != nil {
		status = answer.StatusCode()
		if err == nil {
			body, err = readAnswer(answer.RawResponse)
			defer clear(body)
		}
	}
	if err != nil && status < 400 {
		return nil, status, &Error{Op: q.op, StatusCode: status, Ambiguous: creates && reached.Load(), Err: err}
	}
	var envelope Response[T]
	bad := json.Unmarshal(body, &envelope)
	if status >= 200 && status < 300 {
		if bad == nil && envelope.Status.Code == 0 {
			bad = errors.New("it has no status")
		}
		if bad != nil {
			return nil, status, malformed(q, status)
		}
		return envelope.Data, status, nil
	}
	return nil, status, &Error{
		Op:         q.op,
		StatusCode: status,
		Message:    shorten(envelope.Status.Error),
		RetryAfter: parseRetryAfter(answer.Header().Get("Retry-After"), time.Now()),
		Foreign:    envelope.Status.Code == 0,
		Ambiguous:  creates && status >= 500,
	}
}

// readAnswer reads the body of an answer, at most maxAnswer bytes, and closes it.
// The caller clears what it gets once it is decoded: what a row repeats of a
// Secret's manifest must not stay in memory. For the same reason no copy is left
// behind when the buffer grows.
func readAnswer(answer *http.Response) ([]byte, error) {
	defer answer.Body.Close() //nolint:errcheck // what matters was read
	body := make([]byte, 0, min(max(answer.ContentLength+1, 4<<10), maxAnswer+1))
	for {
		n, err := answer.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			clear(body)
			return nil, err
		case len(body) > maxAnswer:
			clear(body)
			return nil, fmt.Errorf("the answer is too large: more than %d bytes", maxAnswer)
		case len(body) == cap(body):
			larger := append(make([]byte, 0, min(2*cap(body), maxAnswer+1)), body...)
			clear(body)
			body = larger
		}
	}
}

// malformed is the error of a success answer that is not the API's. Its text is
// fixed: a parser's would quote the body.
func malformed(q request, status int) *Error {
	return &Error{
		Op:         q.op,
		StatusCode: status,
		Message:    "the answer is not one of the control-plane API",
		Foreign:    true,
		Ambiguous:  q.method == http.MethodPost,
	}
}

// sendOne is send for an answer of exactly one object.
func sendOne[T any](ctx context.Context, c *Client, q request) (T, int, error) {
	rows, status, err := send[T](ctx, c, q)
	if err != nil {
		var none T
		return none, status, err
	}
	if len(rows) != 1 {
		var none T
		return none, status, malformed(q, http.StatusOK)
	}
	return rows[0], status, nil
}

// encode marshals without HTML escapes, which would make the text of a
// RuntimeDefinition longer for nothing.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		// The cause may quote a part of the value.
		return nil, errors.New("the body is not valid JSON")
	}
	return buf.Bytes(), nil
}
