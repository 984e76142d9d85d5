package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// The bounds of Config.SessionLifetime. A stolen cookie is valid as long as its session.
const (
	minSessionLifetime = time.Minute
	maxSessionLifetime = 30 * 24 * time.Hour
)

// pruneRate limits the deletions of expired sessions.
var pruneRate = Rate{PerSecond: 1.0 / 60, Burst: 1}

// sessionCookie is the name of the session cookie. It is SameSite=Strict.
const sessionCookie = "threeport-session"

// hostPrefix restricts a cookie to TLS, this host and all paths (RFC 6265bis, section 4.1.3.2). It is not used over
// plain HTTP on loopback, where some browsers reject it.
const hostPrefix = "__Host-"

// cookieName returns the full name of a cookie; ok is false if the request must not have cookies.
func cookieName(r *http.Request, cookie string) (name string, ok bool) {
	switch {
	case r.TLS != nil:
		return hostPrefix + cookie, true
	case isConfidential(r):
		return cookie, true
	default:
		return "", false
	}
}

// sessionKey returns the key of a request's session; ok is false without a well-formed cookie.
func sessionKey(r *http.Request) (key digest, ok bool) {
	name, ok := cookieName(r, sessionCookie)
	if !ok {
		return key, false
	}
	cookies := r.CookiesNamed(name)
	if len(cookies) != 1 || !isSession(cookies[0].Value) {
		return key, false
	}
	return digestOf(cookies[0].Value), true
}

// openSession opens a session and sets its cookie. It closes the session of the request's cookie. After single sign-on
// the request comes from another site and has no cookie, so an earlier session lasts until it expires.
func (a *Authenticator) openSession(w http.ResponseWriter, r *http.Request, cookie string, token store.Token) error {
	now := a.now()
	expires := now.Add(a.config.SessionLifetime)
	if token.ExpiresAt != nil && token.ExpiresAt.Before(expires) {
		expires = *token.ExpiresAt
	}
	if err := a.closeSession(r); err != nil {
		return err
	}
	secret := newSession()
	key := digestOf(secret)
	if err := a.store.CreateSession(r.Context(), key[:], token.ID, expires); err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	// at least a second: 0 would mean no limit
	setCookie(w, cookie, secret, max(1, int(expires.Sub(now)/time.Second)), http.SameSiteStrictMode)
	if a.limits.prunes.reserve("", now) > 0 {
		return nil
	}
	a.writes.add(func(ctx context.Context) {
		if err := a.store.PruneSessions(ctx, now); err != nil {
			a.log.Warn("Deleting expired sessions failed", "error", err)
		}
	})
	return nil
}

// closeSession ends the session of a request, if there is one. Anybody can send a cookie, so it writes, and wakes the open
// streams, for an existing session only.
func (a *Authenticator) closeSession(r *http.Request) error {
	key, ok := sessionKey(r)
	if !ok {
		return nil
	}
	_, err := a.readLimited(r.Context(), r.RemoteAddr, key[:], func(ctx context.Context, hash []byte) (store.Token, error) {
		return a.store.SessionToken(ctx, hash, a.now())
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case errors.Is(err, errTooManyLookups):
		return tooManyLookups()
	case err != nil:
		return unavailable(fmt.Errorf("read session: %w", err))
	}
	if err := a.store.DeleteSession(r.Context(), key[:]); err != nil {
		return unavailable(fmt.Errorf("delete session: %w", err))
	}
	a.cache.invalidateCredential(key)
	return nil
}

// setCookie sets a cookie for this number of seconds; a negative number deletes it.
func setCookie(w http.ResponseWriter, name, value string, seconds int, sent http.SameSite) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure on loopback only, where there is no TLS
		Name: name, Value: value, Path: "/", MaxAge: seconds,
		Secure: strings.HasPrefix(name, hostPrefix), HttpOnly: true, SameSite: sent,
	})
}

// serveStream serves an answer without an end, and ends it with its credential. That is at once if the token is revoked
// or the session closed in this replica. It is within twice cacheTime if that happens in another replica, or if the
// credential expires.
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

// awaitRevocation returns when a request's credential is no longer valid, or its context ends. An error of the store
// does not end it.
func (a *Authenticator) awaitRevocation(r *http.Request) {
	ticker := time.NewTicker(cacheTime)
	defer ticker.Stop()
	for {
		changes := a.cache.nextInvalidation()
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
