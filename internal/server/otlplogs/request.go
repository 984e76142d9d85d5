package otlplogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// requestTimeout is OTLP's default for a request with its answer.
const requestTimeout = 10 * time.Second

// maxAnswer limits the part of an answer that is read.
const maxAnswer = 64 << 10

// refusedError is an answer that refuses the data of a request. The same request would be refused again.
type refusedError struct{ reason string }

// Error implements error.
func (e *refusedError) Error() string { return e.reason }

// laterError is an answer that names the time of the next request.
type laterError struct {
	reason string
	after  time.Duration
}

// Error implements error.
func (e *laterError) Error() string { return e.reason }

// post sends a request. It returns the number of records that the backend rejected, with its reason, or an error if it took none: a
// [refusedError], a [laterError] or another one that is retried.
func (e *Exporter) post(ctx context.Context, body []byte) (rejected int64, reason string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("User-Agent", "threeport-controlplane/"+e.version)
	if err := e.config.addHeaders(req.Header); err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300 && err != nil:
		return 0, "", fmt.Errorf("read the answer: %w", err)
	case code >= 200 && code < 300:
		rejected, reason = partialSuccess(answer)
		return rejected, reason, nil
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return 0, "", &refusedError{answerText(resp, answer)}
	default:
		if after := retryAfter(resp.Header.Get("Retry-After"), time.Now()); after > 0 {
			return 0, "", &laterError{answerText(resp, answer), after}
		}
		return 0, "", errors.New(answerText(resp, answer))
	}
}

// retryAfter is the delay of a Retry-After header; 0 for none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// maxReason limits the reason of a backend in a log line.
const maxReason = 200

// answerText describes a failed answer, whose body is a google.rpc.Status or a text.
func answerText(resp *http.Response, body []byte) string {
	const messageOfStatus = 2
	text := string(body)
	if resp.Header.Get("Content-Type") == "application/x-protobuf" {
		text = string(fields(body)[messageOfStatus].bytes)
	}
	return fmt.Sprintf("HTTP %d: %.*q", resp.StatusCode, maxReason, text)
}

// partialSuccess returns the number of rejected records of an ExportLogsServiceResponse, and the reason. The generated type of this message
// would import gRPC. A body that is none means success, as the status says.
func partialSuccess(body []byte) (rejected int64, reason string) {
	const partial, rejectedRecords, errorMessage = 1, 1, 2
	found := fields(fields(body)[partial].bytes)
	return int64(found[rejectedRecords].number), string(found[errorMessage].bytes) //nolint:gosec // the number is an int64 of the message
}

// field is the value of a field of a protobuf message.
type field struct {
	number uint64
	bytes  []byte
}

// fields returns the last value of each field of a message. It ends at the first invalid one.
func fields(message []byte) map[protowire.Number]field {
	found := map[protowire.Number]field{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			break
		}
		message = message[n:]
		var value field
		switch kind {
		case protowire.VarintType:
			value.number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			value.bytes, n = protowire.ConsumeBytes(message)
		case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			break
		}
		message = message[n:]
		found[number] = value
	}
	return found
}
