package threeport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-resty/resty/v2"
)

// maxAnswer bounds an answer with a row, in bytes. The largest one has a RuntimeDefinition and a JSONDefinition, and
// Kubernetes has no objects above 3 MiB.
const maxAnswer = 16 << 20

const (
	// maxErrorAnswer bounds an answer that is an error, in bytes.
	maxErrorAnswer = 64 << 10
	// largeAnswer is the size in bytes above which one answer is read and decoded at a time: those of all concurrent requests could fill the
	// memory.
	largeAnswer = 256 << 10
)

// ErrAnswerTooLarge is in the chain of the error of an answer that was not read to its end.
var ErrAnswerTooLarge = errors.New("the answer is too large")

// Client makes requests to the control-plane API. It is safe for concurrent use.
//
// resty has the base URL, the headers and the middleware that authorizes each request. It neither decodes answers nor
// retries: its reader leaves copies of a growing buffer in memory, which may hold a Secret's data, and the outbox decides on
// retries.
type Client struct {
	http      *resty.Client
	transport *reloadingTransport
	token     *bearerToken
	large     chan struct{} // holds a value while an answer above largeAnswer is in memory
}

// New makes a client from a valid configuration. It reads the certificate and token files, so that a missing one is found
// at the start. It sends nothing.
func New(config Config) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	base, err := config.baseURL()
	if err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	transport, err := newReloadingTransport(config, base.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	token := &bearerToken{file: tokenFile(config.TokenFile)}
	if _, err := token.read(); err != nil {
		return nil, fmt.Errorf("control-plane client: %w", err)
	}
	client := resty.NewWithClient(&http.Client{
		Transport: transport,
		Timeout:   config.Timeout,
		// A redirected POST or PATCH becomes a GET, whose success would look like a delivery.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).
		SetBaseURL(base.String()).
		SetHeader("Accept", "application/json").
		SetHeader("User-Agent", "threeport-agent").
		SetDoNotParseResponse(true).
		SetDisableWarn(true).
		SetLogger(discard{})
	if config.Allowed != nil {
		client.OnBeforeRequest(func(*resty.Client, *resty.Request) error { return config.Allowed() })
	}
	client.OnBeforeRequest(func(_ *resty.Client, req *resty.Request) error {
		text, err := token.read()
		req.SetAuthToken(text)
		return err
	})
	return &Client{http: client, transport: transport, token: token, large: make(chan struct{}, 1)}, nil
}

// CertificateExpiry returns when the client certificate ends; zero without one.
func (c *Client) CertificateExpiry() time.Time { return c.transport.certificateExpiry() }

// Close closes idle connections. Requests under way are not disturbed.
func (c *Client) Close() {
	c.http.GetClient().CloseIdleConnections()
}

// discard keeps resty from writing to standard error. Every failure is returned, and its handler logs it.
type discard struct{}

func (discard) Errorf(string, ...any) {}
func (discard) Warnf(string, ...any)  {}
func (discard) Debugf(string, ...any) {}

// request is one call.
type request struct {
	op     string // the operation in errors, such as "create workload event"
	method string
	path   string
	query  map[string]string
	body   any // nil for none
	// encoding is the Content-Encoding of the body; empty for none.
	encoding string
	// objects bounds the objects of an answer that is not in v0, and with maxCommas its values.
	objects int
	// maxAnswer bounds the answer, in bytes; 0 for that of a row.
	maxAnswer int
}

// answer is the outcome of a request.
type answer struct {
	status int // 0 if there was no answer
	header http.Header
	body   []byte
	// release is called once the body is decoded. It clears the body: a row may have the manifest of a Secret, which must not stay in
	// memory.
	release func()
}

// exchange makes one request. The error is that of the middleware or the network.
func (c *Client) exchange(ctx context.Context, q request, body []byte) (out answer, err error) {
	out.release = func() {}
	req := c.http.R().SetContext(ctx).SetQueryParams(q.query)
	if body != nil {
		req.SetHeader("Content-Type", "application/json").SetBody(body)
	}
	if q.encoding != "" {
		req.SetHeader("Content-Encoding", q.encoding)
	}
	setTraceHeader(ctx, req.Header)
	raw, err := req.Execute(q.method, q.path)
	if raw != nil && raw.RawResponse != nil {
		out.status, out.header = raw.StatusCode(), raw.Header()
		if err == nil {
			most := cmp.Or(q.maxAnswer, maxAnswer)
			if out.status >= http.StatusBadRequest {
				most = min(most, maxErrorAnswer)
			}
			out.body, out.release, err = c.readAnswer(ctx, raw.RawBody(), raw.RawResponse.ContentLength, most)
		}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		c.Close() // connections may be half open: the next request makes a new one
	}
	return out, err
}

// send makes one request and returns its decoded answer, and the HTTP status.
func send[T any](ctx context.Context, c *Client, q request) (Response[T], int, error) {
	var none Response[T]
	var body []byte
	if q.body != nil {
		var err error
		if body, err = encode(q.body); err != nil {
			return none, 0, &Error{Op: q.op, Unsendable: true, Err: err}
		}
	}
	got, err := c.exchange(ctx, q, body)
	defer got.release()
	if err != nil && got.status < 400 {
		return none, got.status, &Error{Op: q.op, StatusCode: got.status, Err: err}
	}
	var envelope Response[T]
	bad := json.Unmarshal(got.body, &envelope)
	if got.status >= 200 && got.status < 300 {
		// The status in the body contradicts the HTTP status: the answer is a proxy's.
		if code := envelope.Status.Code; bad != nil || code < 200 || code >= 300 {
			return none, got.status, malformed(q, got.status)
		}
		return envelope, got.status, nil
	}
	return none, got.status, &Error{
		Op:         q.op,
		StatusCode: got.status,
		Message:    shorten(envelope.Status.Error),
		RetryAfter: parseRetryAfter(got.header.Get("Retry-After"), time.Now()),
		Foreign:    envelope.Status.Code == 0,
		Problem:    problemOf(got),
	}
}

// problemOf returns the code in the [ProblemHeader] of a 403; empty if there is none. No other answer has one.
func problemOf(got answer) string {
	if got.status == http.StatusForbidden && got.header.Get(ProblemHeader) == ProblemForbidden {
		return ProblemForbidden
	}
	return ""
}

// readAnswer reads an answer, at most a number of bytes, and closes it. The length is its Content-Length; -1 if unknown. A buffer is
// cleared when it is replaced by a larger one. The caller releases the body.
func (c *Client) readAnswer(ctx context.Context, answer io.ReadCloser, length int64, most int) (body []byte, release func(), err error) {
	defer answer.Close() //nolint:errcheck // what matters was read
	isLarge := false
	release = func() {
		clear(body)
		if isLarge {
			<-c.large
		}
	}
	grow := func(size int) error {
		if size > largeAnswer && !isLarge {
			select {
			case c.large <- struct{}{}:
				isLarge = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		larger := append(make([]byte, 0, size), body...)
		clear(body)
		body = larger
		return nil
	}
	if length < 0 {
		length = 4 << 10
	}
	err = grow(int(min(length, int64(most)) + 1))
	for err == nil {
		var n int
		n, err = answer.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, release, nil
		case err != nil:
		case len(body) > most:
			err = fmt.Errorf("%w: more than %d bytes", ErrAnswerTooLarge, most)
		case len(body) == cap(body):
			err = grow(min(2*cap(body), most+1))
		}
	}
	release()
	return nil, func() {}, err
}

// malformed is the error of a successful answer that is not the API's. Its text is constant: that of a parser would quote
// the body.
func malformed(q request, status int) *Error {
	return &Error{
		Op:         q.op,
		StatusCode: status,
		Message:    "the answer is not one of the control-plane API",
		Foreign:    true,
	}
}

// sendOne is send for an answer of exactly one object.
func sendOne[T any](ctx context.Context, c *Client, q request) (T, int, error) {
	var none T
	answer, status, err := send[T](ctx, c, q)
	if err != nil {
		return none, status, err
	}
	if len(answer.Data) != 1 {
		return none, status, malformed(q, http.StatusOK)
	}
	return answer.Data[0], status, nil
}

// encode marshals without HTML escapes, which would make a RuntimeDefinition longer.
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
