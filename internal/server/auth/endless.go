package auth

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// serveEndless serves an answer that goes on until somebody ends it, and ends it with its credential: at once when the
// token is revoked or the session closed here, and within twice cacheTime when another replica did it, or when it has
// expired.
func (a *Authenticator) serveStream(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		a.awaitRevocation(r)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	next.ServeHTTP(w, r)
}

// awaitEnd returns when a request's credential does not count any more, or its context has ended. A store that does not
// answer proves nothing.
func (a *Authenticator) awaitRevocation(r *http.Request) {
	ticker := time.NewTicker(cacheTime)
	defer ticker.Stop()
	for {
		changes := a.cache.invalidations()
		_, err := a.authenticate(r)
		if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusUnauthorized {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		case <-changes:
		}
	}
}
