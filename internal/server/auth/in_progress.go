package auth

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// The bounds of the requests in progress, of each role and of each of its principals. A request is in progress until its client has
// read the answer. Until then it holds its headers, which take up to 30 KiB of memory. Administrators are trusted, and agents of v0
// behind a proxy may be one administrator at one address, so there is no bound for one of them.
const (
	maxAgentRequests           = 2048
	maxAgentRequestsPerCluster = maxAgentRequests / 16
	maxViewerRequests          = 512
	maxRequestsPerViewer       = maxViewerRequests / 8
	maxAdminRequests           = 1024
)

// answerTimeout is how long a principal may take to read the end of an answer.
const answerTimeout = 30 * time.Second

// concurrencyLimits are the limits of requests at the same time.
type concurrencyLimits struct {
	unauthenticated *requestLimit // without a principal
	forms           *requestLimit // whose body has not arrived
	lookups         *requestLimit // of unknown credentials
	principals      map[Role]*requestLimit
}

func newConcurrencyLimits() concurrencyLimits {
	return concurrencyLimits{
		unauthenticated: newRequestLimit(maxUnauthenticatedRequests, maxUnauthenticatedRequestsPerAddress),
		forms:           newRequestLimit(maxForms, maxFormsPerAddress),
		lookups:         newRequestLimit(maxLookups, maxLookupsPerAddress),
		principals: map[Role]*requestLimit{
			RoleAgent:  newRequestLimit(maxAgentRequests, maxAgentRequestsPerCluster),
			RoleViewer: newRequestLimit(maxViewerRequests, maxRequestsPerViewer),
			RoleAdmin:  newRequestLimit(maxAdminRequests, maxAdminRequests),
		},
	}
}

// releaseKey is the context key of the function that ends the counting of a request.
type releaseKey struct{}

// serveInProgress serves a request of a principal and counts it until the client has read the answer.
func (a *Authenticator) serveInProgress(w http.ResponseWriter, r *http.Request, p Principal, serve func(*http.Request)) {
	limit, key := a.atOnce.principals[p.Role], p.limitKeyAt(r.RemoteAddr)
	if !limit.tryAcquire(key) {
		refuseBusy(w)
		return
	}
	release := sync.OnceFunc(func() { limit.release(key) })
	defer release()
	serve(r.WithContext(context.WithValue(r.Context(), releaseKey{}, release)))
	awaitReading(w, r, answerTimeout)
}

// BeginStream stops counting a request as in progress. Its handler calls it before an answer without an end.
func BeginStream(ctx context.Context) {
	if release, ok := ctx.Value(releaseKey{}).(func()); ok {
		release()
	}
}

// awaitReading waits until the client has read the answer. HTTP/1.1 leaves the answer to the kernel. HTTP/2 keeps the request as long
// as the client gives no window, except for an answer without a body.
func awaitReading(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.ProtoMajor != 2 {
		return
	}
	controller := http.NewResponseController(w)
	_ = controller.SetWriteDeadline(time.Now().Add(timeout)) // only a test's writer has none
	_ = controller.Flush()                                   // fails only if the client does not read
}

// refuseBusy answers without a body, which the client need not read.
func refuseBusy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
}
