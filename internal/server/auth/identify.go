package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// identify finds who makes a request, by what was given most deliberately: a bearer token, a session, a certificate. A
// token that does not count is an error whatever else there is; a session that has ended is none.
func (a *Authenticator) authenticate(r *http.Request) (Principal, error) {
	if !a.config.Enabled {
		return Principal{Name: "everyone", Role: RoleAdmin, Credential: CredentialNone}, nil
	}
	if given := r.Header["Authorization"]; len(given) > 0 {
		return a.bearerPrincipal(r, given)
	}
	p, found, err := a.sessionPrincipal(r)
	if found || err != nil {
		return p, err
	}
	if cert := verifiedCertificate(r); cert != nil {
		if a.config.Trusted != nil && !a.config.Trusted(r.TLS) {
			return Principal{}, untrustedCertificate()
		}
		return a.certificatePrincipal(cert, a.now())
	}
	return Principal{}, unauthenticated("a client certificate, a bearer token or a session is needed")
}

// ofBearer is the principal of an Authorization header (RFC 6750, section 2.1).
func (a *Authenticator) bearerPrincipal(r *http.Request, given []string) (Principal, error) {
	scheme, secret, _ := strings.Cut(given[0], " ")
	switch {
	case len(given) > 1 || !strings.EqualFold(scheme, "Bearer"):
		return Principal{}, unauthenticated("accepted is one Authorization header, with a bearer token")
	case !isConfidential(r):
		return Principal{}, unauthenticated("a token is taken over TLS only")
	case !isToken(secret):
		return Principal{}, invalidToken()
	}
	key, now := digestOf(secret), a.now()
	token, err := a.cache.token(r.Context(), key, now, a.store.TokenByHash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Principal{}, invalidToken()
	case err != nil:
		return Principal{}, unavailable(fmt.Errorf("read token: %w", err))
	case !isUsable(token, now):
		return Principal{}, invalidToken()
	}
	a.recordUse(token, now)
	return tokenPrincipal(token, CredentialToken), nil
}

// ofSession is the principal of a request's cookie. Found is false if there is no session.
func (a *Authenticator) sessionPrincipal(r *http.Request) (p Principal, found bool, err error) {
	key, ok := sessionKey(r)
	if !ok {
		return Principal{}, false, nil
	}
	now := a.now()
	token, err := a.cache.token(r.Context(), key, now, func(ctx context.Context, hash []byte) (store.Token, error) {
		return a.store.SessionToken(ctx, hash, now)
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Principal{}, false, nil
	case err != nil:
		return Principal{}, false, unavailable(fmt.Errorf("read session: %w", err))
	case !isUsable(token, now):
		return Principal{}, false, nil
	}
	a.recordUse(token, now)
	return tokenPrincipal(token, CredentialSession), true, nil
}

func tokenPrincipal(token store.Token, by Credential) Principal {
	if token.Subject != "" {
		return personPrincipal(token.Subject, token.Name, Role(token.Role))
	}
	return Principal{Name: token.Name, Role: Role(token.Role), ClusterUID: token.ClusterUID, Credential: by}
}

// isUsable tells whether a token that exists counts. A row that makes no sense does not.
func isUsable(token store.Token, now time.Time) bool {
	role, err := ParseRole(token.Role)
	return err == nil && token.RevokedAt == nil &&
		(token.ExpiresAt == nil || now.Before(*token.ExpiresAt)) &&
		(role == RoleAgent) == (token.ClusterUID != "")
}

// isConfidential tells whether nobody else reads a request: it came through TLS, or did not leave the machine.
func isConfidential(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}
