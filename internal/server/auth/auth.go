package auth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth/openid"
)

// Authenticator authenticates and authorizes the requests of the API. Create it with [New] and end it with
// [Authenticator.Close]. It is safe for concurrent use.
type Authenticator struct {
	config Config
	store  Store
	log    *slog.Logger
	now    func() time.Time

	origins *http.CrossOriginProtection
	cache   *tokenCache
	usage   *usageTracker
	limits  limits
	atOnce  concurrencyLimits
	signOn  *openid.Provider // nil without single sign-on
	writes  *writeQueue

	auditLog *auditLog
}

// limits are the rate limits of requests, of failed log-ins, of new sessions and their pruning, and of records of reads, log-ins and
// refusals.
type limits struct {
	agents, viewers, admins, logins, sessions, prunes      *rateLimiters
	reads, allReads, recordedLogIns, refusals, allRefusals *rateLimiters
}

// New returns an Authenticator and starts its goroutine, and a second one with an identity provider.
// [Authenticator.Close] ends both. New does not read the store.
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
		usage:   newUsageTracker(),
		atOnce:  newConcurrencyLimits(),
		limits: limits{
			agents:         newRateLimiters(config.AgentRate),
			viewers:        newRateLimiters(config.ViewerRate),
			admins:         newRateLimiters(config.AdminRate),
			logins:         newRateLimiters(loginRate),
			sessions:       newRateLimiters(sessionRate),
			prunes:         newRateLimiters(pruneRate),
			reads:          newRateLimiters(readRate),
			allReads:       newRateLimiters(allReadsRate),
			recordedLogIns: newRateLimiters(logInRate),
			refusals:       newRateLimiters(refusalRate),
			allRefusals:    newRateLimiters(allRefusalsRate),
		},
	}
	if config.SingleSignOn.isSet() {
		var err error
		if a.signOn, err = openid.New(config.SingleSignOn.Config, now, log); err != nil {
			return nil, fmt.Errorf("single sign-on: %w", err)
		}
	}
	a.writes = newWriteQueue()
	a.auditLog = &auditLog{store: s, queue: a.writes, lost: newLossLog(log)}
	return a, nil
}

// Close writes the queued records and stops the goroutines. It logs the loss of records that are not written within ten
// seconds. Call it after the last request and before the store is closed.
func (a *Authenticator) Close() {
	a.writes.close()
	a.auditLog.lost.flush()
	if a.signOn != nil {
		a.signOn.Close()
	}
}

// LoginHandlers are the handlers of the log-in pages, which need no principal. SignOn and Callback are nil without single
// sign-on.
type LoginHandlers struct {
	Form, Login, Style, Logout http.HandlerFunc
	SignOn, Callback           http.HandlerFunc
}

// LoginHandlers returns the handlers for /login (GET and POST), /login/style.css, /logout (POST), /login/sso and
// [CallbackPath]. They must be wrapped by [Authenticator.Middleware].
func (a *Authenticator) LoginHandlers() LoginHandlers {
	h := LoginHandlers{Form: a.handleLoginForm, Login: a.handleLogin, Style: serveStyle, Logout: a.handleLogout}
	if a.signOn != nil {
		h.SignOn, h.Callback = a.handleSignOn, a.handleCallback
	}
	return h
}

// Middleware authenticates each request, authorizes it by the rules, and passes it to next with its [Principal] in the
// context.
func (a *Authenticator) Middleware(rules []Rule, next http.Handler) http.Handler {
	public, others := rulesMuxes(rules)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := cmp.Or(a.checkHost(r), a.checkOrigin(r)); err != nil {
			a.serveUnauthenticated(w, r, func() { a.writeError(w, r, err) })
			return
		}
		if isPublic(public, r) {
			a.servePublic(w, r, next)
			return
		}
		p, err := a.authenticate(r)
		if err != nil {
			a.recordUnauthenticated(r, p, err)
			a.serveUnauthenticated(w, r, func() { a.writeError(w, r, err) })
			return
		}
		a.serveInProgress(w, r, p, func(r *http.Request) { a.serveRecorded(w, r, p, ruleFor(others, r), next) })
	})
}

// serveAuthorized serves the request if the role and the rate limit allow it.
func (a *Authenticator) serveAuthorized(w http.ResponseWriter, r *http.Request, p Principal, granted Rule, next http.Handler) {
	if !granted.allows(p.Role) {
		a.writeError(w, r, forbidden("not allowed for the role "+string(p.Role)))
		return
	}
	if wait := a.throttle(p, r.RemoteAddr, a.now()); wait > 0 {
		a.writeError(w, r, tooManyRequests(wait))
		return
	}
	r = r.WithContext(WithPrincipal(r.Context(), p))
	if granted.Kind == KindStream {
		a.serveStream(w, r, next)
		return
	}
	next.ServeHTTP(w, r)
}

// writeError answers with a problem, or redirects a browser to the log-in page.
func (a *Authenticator) writeError(w http.ResponseWriter, r *http.Request, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = unavailable(err)
	}
	if problem.cause != nil && r.Context().Err() == nil {
		a.log.Error("Authentication failed because of an internal error", "method", r.Method, "path", r.URL.EscapedPath(), "error", problem.cause)
	}
	if problem.closeConnection {
		w.Header().Set("Connection", "close") // net/http also ends the connections of HTTP/2, which has no such header
	}
	if problem.Status == http.StatusUnauthorized && acceptsHTML(r) {
		redirectToLogin(w, r)
		return
	}
	problem.write(w)
}
