package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// sessionLife is how long a browser stays logged in; less if its token expires before.
const sessionLifetime = 12 * time.Hour

// sessionCookie is the name of a session's cookie. It is Strict: a browser sends it with what this site's own pages ask
// for only.
const sessionCookie = "threeport-session"

// hostPrefix makes a browser take a cookie only over TLS, from this host and for all of it (RFC 6265bis, section
// 4.1.3.2). Plain HTTP is for loopback, where some browsers refuse it.
const hostPrefix = "__Host-"

// cookieName is how a cookie of a request is called; ok is false where there must be none.
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

// sessionKey is what a session's row is found by; ok is false if there is no cookie, or none that can be right.
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

// openSession makes a session and gives its cookie to the browser. One whose cookie came with the request ends. From
// another site none comes, as at the end of single sign-on: what the browser had before then lasts until it expires.
func (a *Authenticator) openSession(w http.ResponseWriter, r *http.Request, cookie string, token store.Token) error {
	now := a.now()
	expires := now.Add(sessionLifetime)
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
	// At least a second: 0 would mean no limit.
	setCookie(w, cookie, secret, max(1, int(expires.Sub(now)/time.Second)), http.SameSiteStrictMode)
	a.writes.add(func(ctx context.Context) {
		if err := a.store.PruneSessions(ctx, now); err != nil {
			a.log.Warn("Sessions that ended not removed", "error", err)
		}
	})
	return nil
}

// closeSession ends a request's session, if it has one.
func (a *Authenticator) closeSession(r *http.Request) error {
	key, ok := sessionKey(r)
	if !ok {
		return nil
	}
	if err := a.store.DeleteSession(r.Context(), key[:]); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	a.cache.invalidateCredential(key)
	return nil
}

// setCookie gives the browser a cookie for so many seconds; below 0 it takes it away.
func setCookie(w http.ResponseWriter, name, value string, seconds int, sent http.SameSite) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure on loopback only, where there is no TLS
		Name: name, Value: value, Path: "/", MaxAge: seconds,
		Secure: strings.HasPrefix(name, hostPrefix), HttpOnly: true, SameSite: sent,
	})
}
