package auth

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxUnauthenticatedRequests bounds the requests without a valid credential whose clients have not read the answer yet. An HTTP/2 client
// can have many such requests on a connection, and each holds its headers. maxForms bounds those whose body has not arrived yet.
const (
	maxUnauthenticatedRequests           = 256
	maxUnauthenticatedRequestsPerAddress = maxUnauthenticatedRequests / 8
	maxForms                             = 256
	maxFormsPerAddress                   = maxForms / 8
)

// FormTimeout is how long such a body may take to arrive, and unreadTimeout how long such a client may take to read its answer.
const (
	FormTimeout   = 5 * time.Second
	unreadTimeout = 10 * time.Second
)

// probePaths are the public paths whose answers have no body if all is well. They are not limited, because an attacker must not
// make the probes of Kubernetes fail.
var probePaths = []string{"/healthz", "/readyz"}

// servePublic serves a request that needs no principal. It reads the body first, so that the answers to others do not wait for it.
func (a *Authenticator) servePublic(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.ContentLength != 0 && !slices.Contains(probePaths, r.URL.Path) && !a.readForm(w, r) {
		return
	}
	a.serveUnauthenticated(w, r, func() { next.ServeHTTP(w, r) })
}

// readForm reads the body of a public request, up to one byte above the limit. Without one it answers, and returns false.
func (a *Authenticator) readForm(w http.ResponseWriter, r *http.Request) bool {
	address := ClientAddress(r.RemoteAddr)
	if !a.atOnce.forms.tryAcquire(address) {
		refuseBusy(w)
		return false
	}
	defer a.atOnce.forms.release(address)
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Now().Add(FormTimeout)) // only a test's writer has none
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxForm+1))
	if err != nil {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestTimeout)
		return false
	}
	if len(body) <= MaxForm { // the body has ended; a deadline would end the request while it is served
		_ = controller.SetReadDeadline(time.Time{})
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// serveUnauthenticated serves a request without a principal, and counts it until the client has read the answer.
func (a *Authenticator) serveUnauthenticated(w http.ResponseWriter, r *http.Request, serve func()) {
	if slices.Contains(probePaths, r.URL.Path) {
		serve()
		return
	}
	address := ClientAddress(r.RemoteAddr)
	if !a.atOnce.unauthenticated.tryAcquire(address) {
		refuseBusy(w)
		return
	}
	defer a.atOnce.unauthenticated.release(address)
	serve()
	awaitReading(w, r, unreadTimeout)
}
