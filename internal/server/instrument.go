package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// slowRequest is the minimum duration of a request that is logged as slow. A stream is never slow.
const slowRequest = 5 * time.Second

// requestInfo is what handlers know of a request for its metric, its log line and its connection.
type requestInfo struct {
	route      string // the mux's pattern
	cause      error  // of a failure that is the server's
	stream     bool
	authorized bool // has a principal that was not refused
}

type requestInfoKey struct{}

// requestInfoOf returns the info of a request, or a new one if the request is not instrumented.
func requestInfoOf(ctx context.Context) *requestInfo {
	if info, ok := ctx.Value(requestInfoKey{}).(*requestInfo); ok {
		return info
	}
	return &requestInfo{}
}

// setCause keeps the cause of a request's failure for the log.
func setCause(ctx context.Context, cause error) { requestInfoOf(ctx).cause = cause }

// instrument counts requests. It logs slow requests, and those that fail for a reason that only the server knows. It logs
// no part of a query or a body.
func instrument(next http.Handler, metrics *metrics, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begin := time.Now()
		info := &requestInfo{}
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() { // a handler may panic
			took := time.Since(begin)
			metrics.request(info, req.Method, recorder.code(), took)
			logRequest(req, info, recorder.code(), took, log)
		}()
		next.ServeHTTP(recorder, req.WithContext(context.WithValue(req.Context(), requestInfoKey{}, info)))
	})
}

func logRequest(req *http.Request, info *requestInfo, code int, took time.Duration, log *slog.Logger) {
	attrs := []any{"method", req.Method, "path", req.URL.Path, "code", code, "seconds", took.Seconds()}
	switch {
	case req.Context().Err() != nil: // the client has gone
	case info.cause != nil && (code >= http.StatusInternalServerError || code < http.StatusBadRequest): // an answer that was begun has 200
		log.Error("Request failed", append(attrs, "error", info.cause)...)
	case took >= slowRequest && !info.stream:
		if info.cause != nil { // such as a body that did not arrive
			attrs = append(attrs, "error", info.cause)
		}
		log.Warn("Request was slow", attrs...)
	}
}

// recordRoute keeps the pattern of the route that serves a request: the mux sets it on the request that it receives only.
func recordRoute(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info := requestInfoOf(req.Context())
		defer func() { info.route = req.Pattern }() // a handler may panic
		mux.ServeHTTP(w, req)
	})
}

// statusRecorder keeps the status code of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader sends a code, and keeps the first that is not informational.
func (r *statusRecorder) WriteHeader(code int) {
	if r.status < http.StatusOK {
		r.status = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap gives an [http.ResponseController] the server's own writer.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// code is the status code of the answer; net/http sends 200 for a handler that sets none.
func (r *statusRecorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
