package otlplogs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/threeport/threeport-agent/internal/otlp"
)

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
func (e *Exporter) post(ctx context.Context, request []byte) (rejected int64, reason string, err error) {
	answer, err := e.client.Post(ctx, request)
	if err != nil {
		return 0, "", err
	}
	if answer.Accepted() {
		rejected, reason = partialSuccess(answer.Body)
		return rejected, reason, nil
	}
	reason = answerText(answer)
	switch after := retryAfter(answer.Header.Get("Retry-After"), time.Now()); {
	case slices.Contains(refusals, answer.Code):
		return 0, "", &refusedError{reason}
	case after > 0:
		return 0, "", &laterError{reason, after}
	default:
		return 0, "", errors.New(reason)
	}
}

// refusals are the codes that refuse the data of a request.
var refusals = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}

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
func answerText(answer *otlp.Answer) string {
	const messageOfStatus = 2
	text := answer.Body
	if answer.Header.Get("Content-Type") == "application/x-protobuf" {
		text = fields(text)[messageOfStatus].bytes
	}
	return fmt.Sprintf("HTTP %d: %.*q", answer.Code, maxReason, text)
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
