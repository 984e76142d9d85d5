package auth

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Problem is an answer other than success, as RFC 9457 has it. It never quotes what was sent.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	// challenge is what WWW-Authenticate says; empty for Bearer alone.
	challenge string
	// retryAfter is how long to wait; 0 says nothing.
	retryAfter time.Duration
	// hangUp ends the connection: a new one may have a better certificate.
	closeConnection bool
	// cause is for the log.
	cause error
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// Unwrap is the cause.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus is the HTTP status; huma asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are those of the answer; huma asks for them.
func (p *Problem) GetHeaders() http.Header {
	headers := http.Header{}
	if p.Status == http.StatusUnauthorized {
		headers.Set("WWW-Authenticate", cmp.Or(p.challenge, "Bearer"))
	}
	if p.retryAfter > 0 {
		headers.Set("Retry-After", strconv.FormatInt(ceilSeconds(p.retryAfter), 10))
	}
	return headers
}

// ContentType is that of the answer; huma asks for it.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func newProblem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

func unauthenticated(detail string) *Problem { return newProblem(http.StatusUnauthorized, detail) }

// distrusted is the answer to a certificate of an authority that was one when its connection was made.
func untrustedCertificate() *Problem {
	p := unauthenticated("the authority of the client certificate does not count any more")
	p.closeConnection = true
	return p
}

// badToken is the one answer to every token that does not count, whatever is wrong with it.
func invalidToken() *Problem {
	p := unauthenticated("the token is not valid: it is unknown, expired or revoked")
	p.challenge = `Bearer error="invalid_token"`
	return p
}

func forbidden(detail string) *Problem { return newProblem(http.StatusForbidden, detail) }

func invalid(detail string) *Problem { return newProblem(http.StatusUnprocessableEntity, detail) }

func tooManyRequests(wait time.Duration) *Problem {
	p := newProblem(http.StatusTooManyRequests, "too many requests: wait as long as Retry-After says")
	p.retryAfter = wait
	return p
}

// unavailable is the answer when the store fails. Why is only for the log.
func unavailable(cause error) *Problem {
	p := newProblem(http.StatusServiceUnavailable, "the database does not answer")
	p.retryAfter, p.cause = time.Second, cause
	return p
}

// write answers with the problem.
func (p *Problem) write(w http.ResponseWriter) {
	headers := w.Header()
	maps.Copy(headers, p.GetHeaders())
	body, _ := json.Marshal(p) // an integer and two strings always marshal
	headers.Set("Content-Type", p.ContentType(""))
	headers.Set("Cache-Control", "no-store")
	headers.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client has gone: there is no one to tell
}

// wholeSeconds rounds up, as Retry-After has no fractions and too early is of no use.
func ceilSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
