package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// slowRequest is from when on a request is worth a line in the log. A watch is meant to last and never is.
const slowRequest = 5 * time.Second

// remark is what handlers know of a request that is to be counted and logged when it is over.
type remark struct {
	route string // the mux's pattern
	cause error  // of a failure that is the server's
	lasts bool   // it is a stream
}

type remarkKey struct{}

// remarkOf is the request's; one that is lost if no one listens.
func remarkOf(ctx context.Context) *remark {
	if r, ok := ctx.Value(remarkKey{}).(*remark); ok {
		return r
	}
	return &remark{}
}

// note tells the log why a request fails.
func note(ctx context.Context, cause error) { remarkOf(ctx).cause = cause }

// observe counts requests, and logs those that fail for a reason which only the server knows, and slow ones. Nothing of
// a query or a body is logged.
func observe(next http.Handler, metrics *metrics, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begin := time.Now()
		about := &remark{}
		answer := &recorder{ResponseWriter: w}
		defer func() { // a handler may panic
			took := time.Since(begin)
			metrics.request(about, req.Method, answer.code(), took)
			report(req, about, answer.code(), took, log)
		}()
		next.ServeHTTP(answer, req.WithContext(context.WithValue(req.Context(), remarkKey{}, about)))
	})
}

func report(req *http.Request, about *remark, code int, took time.Duration, log *slog.Logger) {
	attrs := []any{"method", req.Method, "path", req.URL.Path, "code", code, "seconds", took.Seconds()}
	switch {
	case req.Context().Err() != nil: // the client has gone
	case code >= http.StatusInternalServerError && about.cause != nil: // v0's handlers log for themselves
		log.Error("Request failed", append(attrs, "error", about.cause)...)
	case took >= slowRequest && !about.lasts:
		log.Warn("Request was slow", attrs...)
	}
}

// routed notes which route serves a request: the mux tells only the request that it is given.
func routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		about := remarkOf(req.Context())
		defer func() { about.route = req.Pattern }() // a handler may panic
		mux.ServeHTTP(w, req)
	})
}

// recorder remembers the code of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader sends a code, and remembers the first that is not informational.
func (r *recorder) WriteHeader(code int) {
	if r.status < http.StatusOK {
		r.status = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets an [http.ResponseController] find what the server's own writer can do.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// code is that of the answer; net/http sends 200 for a handler that does not say.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
