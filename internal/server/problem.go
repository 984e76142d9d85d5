package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// retryAfter is how long a client should wait before it repeats a request that failed temporarily, in whole seconds.
const retryAfter = time.Second

// problem is an answer other than success as of RFC 9457, which all endpoints except v0 use. Its text does not quote the
// body.
func problem(code int, detail string, faults ...*huma.ErrorDetail) error {
	return &huma.ErrorModel{Title: http.StatusText(code), Status: code, Detail: detail, Errors: faults}
}

// invalid is the problem of a body that is JSON of another form. Its detail is the first fault, because some clients show only
// the detail.
func invalid(faults []*huma.ErrorDetail) error {
	return problem(http.StatusUnprocessableEntity, faults[0].Location+": "+faults[0].Message, faults...)
}

// parameterProblem names a parameter of the path or the query, and its accepted values.
func parameterProblem(location, accepted string) error {
	return problem(http.StatusUnprocessableEntity, "validation failed",
		&huma.ErrorDetail{Location: location, Message: "accepted is " + accepted})
}

// unavailable is the problem of a temporary failure of the server. Its cause is for the log.
func unavailable(ctx context.Context, detail string, cause error) error {
	setCause(ctx, cause)
	return huma.ErrorWithHeaders(problem(http.StatusServiceUnavailable, detail),
		http.Header{"Retry-After": {strconv.Itoa(int(retryAfter.Seconds()))}})
}

// tooManyRequests is the problem of a client that has reached a limit. The detail says what to do.
func tooManyRequests(detail string, wait time.Duration) error {
	return huma.ErrorWithHeaders(problem(http.StatusTooManyRequests, detail),
		http.Header{"Retry-After": {strconv.Itoa(int(wait.Seconds()))}})
}

// withoutValues is a huma transformer that removes from an answer the values that the client sent. It also removes the texts of errors
// that are no problems, because they may quote the body.
func withoutValues(_ huma.Context, _ string, answer any) (any, error) {
	if model, ok := answer.(*huma.ErrorModel); ok {
		if model.Status == http.StatusInternalServerError {
			model.Errors = nil
		}
		for _, fault := range model.Errors {
			fault.Value = nil
		}
	}
	return answer, nil
}

// writeProblem writes a problem for endpoints that are no operations.
func writeProblem(w http.ResponseWriter, err error) {
	model := &huma.ErrorModel{Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError}
	_ = errors.As(err, &model)
	body, _ := json.Marshal(model) // strings and numbers always marshal
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(model.Status)
	_, _ = w.Write(body) // fails only if the client has gone
}

// storeProblem is the problem of a failed read from the store.
func storeProblem(ctx context.Context, err error) error {
	if invalid, ok := errors.AsType[*store.FieldError](err); ok {
		return parameterProblem("query."+invalid.Field, invalid.Accepted)
	}
	if errors.Is(err, store.ErrNotFound) {
		return problem(http.StatusNotFound, "record not found")
	}
	if errors.Is(err, store.ErrSearchTimeout) {
		return unavailable(ctx, "the search took too long: restrict it by other parameters, such as cluster, level, kind or time", err)
	}
	return unavailable(ctx, "the database failed: ask again", err)
}
