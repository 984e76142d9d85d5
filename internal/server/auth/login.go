package auth

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// Paths of the log-in page.
const (
	loginPath  = "/login"
	stylePath  = "/login/style.css"
	logoutPath = "/logout"
)

// MaxForm limits the log-in form, in bytes.
const MaxForm = 8 << 10

// loginRate limits the failed log-ins of an address, and sessionRate the log-ins of a token or a person.
var (
	loginRate   = Rate{PerSecond: 1.0 / 6, Burst: 10}
	sessionRate = Rate{PerSecond: 1.0 / 6, Burst: 10}
)

// handleLoginForm shows the log-in form.
func (a *Authenticator) handleLoginForm(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	if !a.config.Enabled {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath excludes other hosts
		return
	}
	a.renderLogin(w, http.StatusOK, loginForm{Next: next})
}

// handleLogin opens a session for a token.
func (a *Authenticator) handleLogin(w http.ResponseWriter, r *http.Request) {
	if !a.config.Enabled {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	if err := r.ParseForm(); err != nil {
		a.renderLogin(w, http.StatusBadRequest, loginForm{Next: "/", Message: "The form is invalid."})
		return
	}
	next := localPath(r.PostForm.Get("next"))
	token, err := a.loginWithToken(w, r, strings.TrimSpace(r.PostForm.Get("token")))
	if err != nil {
		a.renderLoginError(w, r, anonymous(r), next, err)
		return
	}
	a.recordLogIn(tokenPrincipal(token, CredentialSession), r, http.StatusSeeOther)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath excludes other hosts
}

// anonymous is the principal of a failed log-in in the audit log.
func anonymous(r *http.Request) string { return "anonymous:" + ClientAddress(r.RemoteAddr) }

// renderLoginError shows the form with the error.
func (a *Authenticator) renderLoginError(w http.ResponseWriter, r *http.Request, who, next string, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = unavailable(err)
	}
	if problem.cause != nil && r.Context().Err() == nil {
		a.log.Error("Log-in failed", "error", problem.cause)
	}
	refused := problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden
	if refused && a.admitRefusal(who, false) {
		a.auditLog.add(a.now(), who, "", r, problem.Status)
	}
	maps.Copy(w.Header(), problem.GetHeaders())
	a.renderLogin(w, problem.Status, loginForm{Next: next, Message: sentence(problem), BadToken: refused && r.URL.Path == loginPath})
}

// loginWithToken opens a session for a valid token. An unknown token and malformed text get the same answer after the
// same work.
func (a *Authenticator) loginWithToken(w http.ResponseWriter, r *http.Request, secret string) (store.Token, error) {
	cookie, ok := cookieName(r, sessionCookie)
	if !ok {
		return store.Token{}, newProblem(http.StatusBadRequest, "a token requires TLS")
	}
	address, now := ClientAddress(r.RemoteAddr), a.now()
	token, err := a.readToken(r, secret, now)
	if err == nil && Role(token.Role) == RoleAgent {
		err = forbidden("an agent's token cannot open a session")
	}
	if err != nil {
		// Only failures count. A secret of 256 bits cannot be guessed, so a valid one may be tried at any time.
		if wait := a.limits.logins.reserve(address, now); wait > 0 {
			return store.Token{}, tooManyRequests(wait)
		}
		return store.Token{}, err
	}
	if wait := a.limits.sessions.reserve("token "+strconv.FormatInt(token.ID, 10), now); wait > 0 {
		return store.Token{}, tooManyRequests(wait)
	}
	if err := a.openSession(w, r, cookie, token); err != nil {
		return store.Token{}, err
	}
	a.limits.logins.reset(address)
	a.recordUse(token, now)
	return token, nil
}

// readToken returns the row of a valid token.
func (a *Authenticator) readToken(r *http.Request, secret string, now time.Time) (store.Token, error) {
	key := digestOf(secret)
	token, err := a.readLimited(r.Context(), r.RemoteAddr, key[:], a.store.TokenByHash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Token{}, invalidToken()
	case errors.Is(err, errTooManyLookups):
		return store.Token{}, tooManyLookups()
	case err != nil:
		return store.Token{}, fmt.Errorf("read token: %w", err)
	case !isUsable(token, now):
		return store.Token{}, invalidToken()
	}
	return token, nil
}

// handleLogout ends the session.
func (a *Authenticator) handleLogout(w http.ResponseWriter, r *http.Request) {
	if err := a.closeSession(r); err != nil {
		a.writeError(w, r, err)
		return
	}
	if name, ok := cookieName(r, sessionCookie); ok {
		setCookie(w, name, "", -1, http.SameSiteStrictMode)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// sentence is the text of a problem for the page.
func sentence(p *Problem) string {
	if p.Status == http.StatusTooManyRequests {
		return "Try again in " + strconv.FormatInt(ceilSeconds(p.retryAfter), 10) + " s."
	}
	return strings.ToUpper(p.Detail[:1]) + p.Detail[1:] + "."
}
