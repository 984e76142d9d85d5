package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth/openid"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// TokenStore keeps tokens. Hashes are SHA-256.
type TokenStore interface {
	CreateToken(ctx context.Context, token store.Token, hash []byte) (store.Token, error)
	// TokenByHash returns [store.ErrNotFound] if there is none; a token that is revoked or expired is returned.
	TokenByHash(ctx context.Context, hash []byte) (store.Token, error)
	Tokens(ctx context.Context) ([]store.Token, error)
	// RevokeToken returns [store.ErrNotFound] if there is none.
	RevokeToken(ctx context.Context, id int64) (store.Token, error)
	RecordTokenUse(ctx context.Context, id int64, at time.Time) error
}

// SessionStore keeps browsers' sessions.
type SessionStore interface {
	CreateSession(ctx context.Context, hash []byte, tokenID int64, expires time.Time) error
	// SessionToken is the token that a session was opened with; [store.ErrNotFound] if the session has ended.
	SessionToken(ctx context.Context, hash []byte, now time.Time) (store.Token, error)
	DeleteSession(ctx context.Context, hash []byte) error
	// PruneSessions removes those that have expired, and what stood for people in them.
	PruneSessions(ctx context.Context, now time.Time) error
}

// AuditStore keeps audit records.
type AuditStore interface {
	AppendAudit(ctx context.Context, record store.AuditRecord) error
	AuditRecords(ctx context.Context, cursor string, size int) (threeport.List[store.AuditRecord], error)
}

// Store is all that access keeps.
type Store interface {
	TokenStore
	SessionStore
	AuditStore
}

// Access knows whom the API serves. Make one with [New] and end it with [Access.Close]. It is safe for concurrent use.
type Authenticator struct {
	config Config
	store  Store
	log    *slog.Logger
	now    func() time.Time

	origins *http.CrossOriginProtection
	cache   *tokenCache
	usage    *usageTracker
	agents  *rateLimiters
	viewers *rateLimiters
	logins  *rateLimiters
	signOn  *openid.Provider // nil if there is none

	writes       *writeQueue
	auditFailures atomic.Int64
}

// New starts a goroutine, and with an identity provider a second one, which [Access.Close] ends. It does not read the
// store.
func New(s Store, config Config, log *slog.Logger) (*Authenticator, error) {
	return newAuthenticator(s, config, log, time.Now)
}

func newAuthenticator(s Store, config Config, log *slog.Logger, now func() time.Time) (*Authenticator, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	a := &Authenticator{
		config: config, store: s, log: log, now: now,
		origins: http.NewCrossOriginProtection(),
		cache:   newTokenCache(),
		usage:    newUsageTracker(),
		agents:  newRateLimiters(config.AgentRate),
		viewers: newRateLimiters(config.ViewerRate),
		logins:  newRateLimiters(loginRate),
	}
	if config.SingleSignOn.isSet() {
		var err error
		if a.signOn, err = openid.New(config.SingleSignOn.Config, now, log); err != nil {
			return nil, fmt.Errorf("single sign-on: %w", err)
		}
	}
	a.writes = newWriteQueue()
	return a, nil
}

// Close writes what waits to be written and ends the goroutines. What is not written after ten seconds goes to the log
// instead. Call it when no request is served any more and before the store is closed: audit records that come later go
// to the log only.
func (a *Authenticator) Close() {
	a.writes.close()
	if a.signOn != nil {
		a.signOn.Close()
	}
}

// Register adds the log-in page to a mux, which has to be behind [Access.Authenticate].
func (a *Authenticator) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+loginPath, a.handleLoginForm)
	mux.HandleFunc("POST "+loginPath, a.handleLogin)
	mux.HandleFunc("GET "+stylePath, serveStyle)
	mux.HandleFunc("POST "+logoutPath, a.handleLogout)
	if a.signOn != nil {
		mux.HandleFunc("GET "+signOnPath, a.handleSignOn)
		mux.HandleFunc("GET "+CallbackPath, a.handleCallback)
	}
}

// Authenticate serves a request if it may be served, with its principal in its context.
func (a *Authenticator) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := cmp.Or(a.checkHost(r), a.checkOrigin(r)); err != nil {
			a.writeError(w, r, err)
			return
		}
		if a.isPublic(r) {
			next.ServeHTTP(w, r)
			return
		}
		p, err := a.authenticate(r)
		if err != nil {
			a.writeError(w, r, err)
			return
		}
		granted := ruleFor(r)
		serve := func(w http.ResponseWriter, r *http.Request) { a.serveAuthorized(w, r, p, granted, next) }
		if isAudited(p, granted, r.Method) {
			a.serveAudited(w, r, p, serve)
			return
		}
		serve(w, r)
	})
}

// checkOrigin refuses what another site makes a browser send. Browsers add a session's cookie by themselves, and a
// certificate too, and can reach an API on loopback that asks for neither; a bearer token they do not add.
func (a *Authenticator) checkOrigin(r *http.Request) error {
	if len(r.Header["Authorization"]) > 0 {
		return nil
	}
	if a.origins.Check(r) != nil {
		return forbidden("the request comes from a page of another site")
	}
	return nil
}

// serve serves the request of a principal, if it may make it now.
func (a *Authenticator) serveAuthorized(w http.ResponseWriter, r *http.Request, p Principal, granted rule, next http.Handler) {
	if !granted.allows(p.Role) {
		a.writeError(w, r, forbidden("this is not for the role "+string(p.Role)))
		return
	}
	if wait := a.throttle(p, a.now()); wait > 0 {
		a.writeError(w, r, tooManyRequests(wait))
		return
	}
	r = r.WithContext(WithPrincipal(r.Context(), p))
	if granted.kind == kindStream {
		a.serveStream(w, r, next)
		return
	}
	next.ServeHTTP(w, r)
}

// refuse answers with a problem, or with the log-in page to somebody who looks for a page.
func (a *Authenticator) writeError(w http.ResponseWriter, r *http.Request, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = unavailable(err)
	}
	if problem.cause != nil && r.Context().Err() == nil {
		a.log.Error("Access not decided", "method", r.Method, "path", r.URL.EscapedPath(), "error", problem.cause)
	}
	if problem.closeConnection {
		w.Header().Set("Connection", "close") // HTTP/2 has no such header, and net/http ends its connections for it too
	}
	if problem.Status == http.StatusUnauthorized && acceptsHTML(r) {
		redirectToLogin(w, r)
		return
	}
	problem.write(w)
}
