package auth

import (
	"net/http"
	"slices"
	"time"
)

// maxUnauthenticated bounds the requests without a valid credential whose clients have not read the answer yet. An HTTP/2 client
// can have many such requests on a connection, and each holds its headers.
const maxUnauthenticated = 256

// unreadTimeout is how long such a client may take to read its answer.
const unreadTimeout = 10 * time.Second

// probePaths are the public paths whose answers have no body if all is well. They are not limited, because an attacker must not
// make the probes of Kubernetes fail.
var probePaths = []string{"/healthz", "/readyz"}

// serveUnauthenticated serves a request without a principal, and waits until the client has read the answer. HTTP/1.1 leaves the
// answer to the kernel. HTTP/2 keeps the request as long as the client gives no window, except for an answer without a body.
func (a *Authenticator) serveUnauthenticated(w http.ResponseWriter, r *http.Request, serve func()) {
	if slices.Contains(probePaths, r.URL.Path) {
		serve()
		return
	}
	if !a.unauthenticated.TryAcquire(1) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer a.unauthenticated.Release(1)
	serve()
	if r.ProtoMajor == 2 {
		controller := http.NewResponseController(w)
		_ = controller.SetWriteDeadline(time.Now().Add(unreadTimeout)) // only a test's writer has none
		_ = controller.Flush()                                         // fails only if the client does not read
	}
}
