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
	TouchToken(ctx context.Context, id int64, at time.Time) error
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
type Access struct {
	config Config
	store  Store
	log    *slog.Logger
	now    func() time.Time

	origins *http.CrossOriginProtection
	cache   *tokenCache
	uses    *uses
	agents  *limiters
	viewers *limiters
	logins  *limiters
	signOn  *openid.Provider // nil if there is none

	backlog       *backlog
	auditFailures atomic.Int64
}

// New starts a goroutine, and with an identity provider a second one, which [Access.Close] ends. It does not read the
// store.
func New(s Store, config Config, log *slog.Logger) (*Access, error) {
	return newAccess(s, config, log, time.Now)
}

func newAccess(s Store, config Config, log *slog.Logger, now func() time.Time) (*Access, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	a := &Access{
		config: config, store: s, log: log, now: now,
		origins: http.NewCrossOriginProtection(),
		cache:   newTokenCache(),
		uses:    newUses(),
		agents:  newLimiters(config.AgentRate),
		viewers: newLimiters(config.ViewerRate),
		logins:  newLimiters(loginRate),
	}
	if config.SingleSignOn.isSet() {
		var err error
		if a.signOn, err = openid.New(config.SingleSignOn.Config, now, log); err != nil {
			return nil, fmt.Errorf("single sign-on: %w", err)
		}
	}
	a.backlog = newBacklog()
	return a, nil
}

// Close writes what waits to be written and ends the goroutines. What is not written after ten seconds goes to the log
// instead. Call it when no request is served any more and before the store is closed: audit records that come later go
// to the log only.
func (a *Access) Close() {
	a.backlog.close()
	if a.signOn != nil {
		a.signOn.Close()
	}
}

// LoginHandlers are the handlers of the log-in page, which need no principal. BeginSignOn and FinishSignOn are nil without an
// identity provider.
type LoginHandlers struct {
	Form, Submit, Style, Logout http.HandlerFunc
	BeginSignOn, FinishSignOn   http.HandlerFunc
}

// LoginHandlers are to be served at /login (GET and POST), /login/style.css, /logout (POST), /login/sso and [CallbackPath],
// behind [Access.Authenticate].
func (a *Access) LoginHandlers() LoginHandlers {
	h := LoginHandlers{Form: a.showLogin, Submit: a.login, Style: serveStyle, Logout: a.logout}
	if a.signOn != nil {
		h.BeginSignOn, h.FinishSignOn = a.beginSignOn, a.finishSignOn
	}
	return h
}

// Authenticate serves a request if the rules grant it, with its principal in its context.
func (a *Access) Authenticate(rules []Rule, next http.Handler) http.Handler {
	table := newRuleTable(rules)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := cmp.Or(a.checkHost(r), a.checkOrigin(r)); err != nil {
			a.refuse(w, r, err)
			return
		}
		if a.isPublic(r) {
			next.ServeHTTP(w, r)
			return
		}
		p, err := a.identify(r)
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		granted := table.find(r)
		serve := func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, p, granted, next) }
		if isAudited(p, granted, r.Method) {
			a.serveAudited(w, r, p, serve)
			return
		}
		serve(w, r)
	})
}

// checkOrigin refuses what another site makes a browser send. Browsers add a session's cookie by themselves, and a
// certificate too, and can reach an API on loopback that asks for neither; a bearer token they do not add.
func (a *Access) checkOrigin(r *http.Request) error {
	if len(r.Header["Authorization"]) > 0 {
		return nil
	}
	if a.origins.Check(r) != nil {
		return forbidden("the request comes from a page of another site")
	}
	return nil
}

// serve serves the request of a principal, if it may make it now.
func (a *Access) serve(w http.ResponseWriter, r *http.Request, p Principal, granted Rule, next http.Handler) {
	if !granted.grants(p.Role) {
		a.refuse(w, r, forbidden("this is not for the role "+string(p.Role)))
		return
	}
	if wait := a.pace(p, a.now()); wait > 0 {
		a.refuse(w, r, tooMany(wait))
		return
	}
	r = r.WithContext(With(r.Context(), p))
	if granted.Class == Stream {
		a.serveEndless(w, r, next)
		return
	}
	next.ServeHTTP(w, r)
}

// refuse answers with a problem, or with the log-in page to somebody who looks for a page.
func (a *Access) refuse(w http.ResponseWriter, r *http.Request, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = unavailable(err)
	}
	if problem.cause != nil && r.Context().Err() == nil {
		a.log.Error("Access not decided", "method", r.Method, "path", r.URL.EscapedPath(), "error", problem.cause)
	}
	if problem.hangUp {
		w.Header().Set("Connection", "close") // HTTP/2 has no such header, and net/http ends its connections for it too
	}
	if problem.Status == http.StatusUnauthorized && wantsPage(r) {
		askToLogin(w, r)
		return
	}
	problem.write(w)
}
