package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// retryAfter is how long a client should wait before it repeats what the server could not do, in whole seconds.
const retryAfter = time.Second

// problem is an answer other than success, of the endpoints that v0 does not have, as RFC 9457 describes it. Its text
// quotes nothing of a body.
func problem(code int, detail string, faults ...*huma.ErrorDetail) error {
	return &huma.ErrorModel{Title: http.StatusText(code), Status: code, Detail: detail, Errors: faults}
}

// invalid is a body that is JSON, but not what was wanted. Its detail is the first fault: some clients read no more.
func invalid(faults []*huma.ErrorDetail) error {
	return problem(http.StatusUnprocessableEntity, faults[0].Location+": "+faults[0].Message, faults...)
}

// parameterProblem says what is wrong with a parameter of the path or the query.
func parameterProblem(location, accepted string) error {
	return problem(http.StatusUnprocessableEntity, "validation failed",
		&huma.ErrorDetail{Location: location, Message: "accepted is " + accepted})
}

// unavailable is a failure that is not the client's and may be over in a moment. Its cause is for the log.
func unavailable(ctx context.Context, detail string, cause error) error {
	note(ctx, cause)
	return huma.ErrorWithHeaders(problem(http.StatusServiceUnavailable, detail),
		http.Header{"Retry-After": {strconv.Itoa(int(retryAfter.Seconds()))}})
}

// withoutValues is a transformer of answers: what a client sent is not in them.
func withoutValues(_ huma.Context, _ string, answer any) (any, error) {
	if model, ok := answer.(*huma.ErrorModel); ok {
		for _, fault := range model.Errors {
			fault.Value = nil
		}
	}
	return answer, nil
}

// answerProblem writes a problem where huma does not.
func answerProblem(w http.ResponseWriter, err error) {
	model := &huma.ErrorModel{Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError}
	_ = errors.As(err, &model)
	body, _ := json.Marshal(model) // strings and numbers always marshal
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(model.Status)
	_, _ = w.Write(body) // the client has gone: there is no one to tell
}
