package auth

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Problem is an error response according to RFC 9457. It never quotes input.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	// code is a code of [threeport.ReportProblem], for the header [threeport.ProblemHeader]; empty for none.
	code string
	// challenge is the WWW-Authenticate header; empty means Bearer.
	challenge string
	// retryAfter is the Retry-After header; 0 means none.
	retryAfter time.Duration
	// closeConnection closes the connection, since a new one may have another certificate.
	closeConnection bool
	// cause is logged and not sent.
	cause error
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	headers := http.Header{}
	if p.Status == http.StatusUnauthorized {
		headers.Set("WWW-Authenticate", cmp.Or(p.challenge, "Bearer"))
	}
	if p.code != "" {
		headers.Set(threeport.ProblemHeader, p.code)
	}
	if p.retryAfter > 0 {
		headers.Set("Retry-After", strconv.FormatInt(ceilSeconds(p.retryAfter), 10))
	}
	return headers
}

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func newProblem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

func unauthenticated(detail string) *Problem { return newProblem(http.StatusUnauthorized, detail) }

// untrustedCertificate rejects a certificate of an unknown authority, or one that has expired.
func untrustedCertificate(err error) *Problem {
	p := unauthenticated("the client certificate is not trusted: " + err.Error())
	p.closeConnection = true
	return p
}

// certificateWithoutRole rejects a certificate that names no role, while there is no Config.CertificateRole.
func certificateWithoutRole() *Problem {
	return unauthenticated("the client certificate names no role: use one whose organization is " + groupAgents + ", " + groupViewers +
		" or " + groupAdmins + ", or start the API with --certificate-role, such as --certificate-role=admin for agents of v0")
}

// invalidToken rejects every invalid token with the same answer.
func invalidToken() *Problem {
	p := unauthenticated("the token is not valid: it is unknown, expired or revoked")
	p.challenge = `Bearer error="invalid_token"`
	return p
}

func forbidden(detail string) *Problem { return newProblem(http.StatusForbidden, detail) }

// IsNotAssigned reports whether an error refuses an agent an instance that does not belong to its cluster.
func IsNotAssigned(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.code == threeport.ProblemForbidden
}

// NotAssigned refuses an agent an instance that does not belong to its cluster. The header shows that the
// credential of the agent is valid, so that only the reports of this instance wait.
func NotAssigned(detail string) *Problem {
	p := forbidden(detail)
	p.code = threeport.ProblemForbidden
	return p
}

func invalid(detail string) *Problem { return newProblem(http.StatusUnprocessableEntity, detail) }

func tooManyRequests(wait time.Duration) *Problem {
	p := newProblem(http.StatusTooManyRequests, "too many requests: see Retry-After")
	p.retryAfter = wait
	return p
}

// tooManyLookups is the answer to an unknown credential that is not looked up. It may be valid.
func tooManyLookups() *Problem {
	p := newProblem(http.StatusServiceUnavailable, "too many unknown credentials at once: send the request again")
	p.retryAfter = time.Second
	return p
}

// unavailable reports a failure of the store; the cause is only logged.
func unavailable(cause error) *Problem {
	p := newProblem(http.StatusServiceUnavailable, "the database is unavailable")
	p.retryAfter, p.cause = time.Second, cause
	return p
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	headers := w.Header()
	maps.Copy(headers, p.GetHeaders())
	body, _ := json.Marshal(p) // cannot fail: an integer and two strings
	headers.Set("Content-Type", p.ContentType(""))
	headers.Set("Cache-Control", "no-store")
	headers.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client is gone
}

// ceilSeconds rounds up to whole seconds, the unit of Retry-After.
func ceilSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
