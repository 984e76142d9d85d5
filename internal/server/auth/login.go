package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// The paths of the log-in page.
const (
	loginPath  = "/login"
	stylePath  = "/login/style.css"
	logoutPath = "/logout"
)

// MaxForm bounds the log-in form, in bytes.
const MaxForm = 8 << 10

// loginRate bounds the log-ins of an address that fail.
var loginRate = Rate{PerSecond: 1.0 / 6, Burst: 10}

// showLogin is the form.
func (a *Access) showLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	if !a.config.Enabled {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath lets no other host through
		return
	}
	a.renderLogin(w, http.StatusOK, loginForm{Next: next})
}

// login opens a session for a token.
func (a *Access) login(w http.ResponseWriter, r *http.Request) {
	if !a.config.Enabled {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	if err := r.ParseForm(); err != nil {
		a.renderLogin(w, http.StatusBadRequest, loginForm{Next: "/", Message: "The form could not be read."})
		return
	}
	next := localPath(r.PostForm.Get("next"))
	token, err := a.logIn(w, r, strings.TrimSpace(r.PostForm.Get("token")))
	if err != nil {
		a.refuseLogin(w, r, nobody(r), next, err)
		return
	}
	a.audit(ofToken(token, CredentialSession).String(), Role(token.Role), r, http.StatusSeeOther)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath lets no other host through
}

// nobody is who audit records say failed to log in.
func nobody(r *http.Request) string { return "anonymous:" + addressOf(r.RemoteAddr) }

// refuseLogin shows the form again, which says why.
func (a *Access) refuseLogin(w http.ResponseWriter, r *http.Request, who, next string, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = unavailable(err)
	}
	if problem.cause != nil && r.Context().Err() == nil {
		a.log.Error("Log-in failed", "error", problem.cause)
	}
	refused := problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden
	if refused {
		a.audit(who, "", r, problem.Status)
	}
	maps.Copy(w.Header(), problem.GetHeaders())
	a.renderLogin(w, problem.Status, loginForm{Next: next, Message: sentence(problem), BadToken: refused && r.URL.Path == loginPath})
}

// logIn checks a token and opens a session for it. A token that does not exist and a text that is none are answered
// alike, after the same work.
func (a *Access) logIn(w http.ResponseWriter, r *http.Request, secret string) (store.Token, error) {
	cookie, ok := cookieName(r, sessionCookie)
	if !ok {
		return store.Token{}, newProblem(http.StatusBadRequest, "a token is taken over TLS only")
	}
	address, now := addressOf(r.RemoteAddr), a.now()
	if wait := a.logins.take(address, now); wait > 0 {
		return store.Token{}, tooMany(wait)
	}
	token, err := a.readToken(r.Context(), secret, now)
	if err != nil {
		return store.Token{}, err
	}
	if Role(token.Role) == RoleAgent {
		return store.Token{}, forbidden("the token is an agent's, for which there is no page")
	}
	if err := a.openSession(w, r, cookie, token); err != nil {
		return store.Token{}, err
	}
	a.logins.forgive(address)
	a.noteUse(token, now)
	return token, nil
}

// readToken reads the row of a token that counts.
func (a *Access) readToken(ctx context.Context, secret string, now time.Time) (store.Token, error) {
	key := digestOf(secret)
	token, err := a.store.TokenByHash(ctx, key[:])
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Token{}, badToken()
	case err != nil:
		return store.Token{}, fmt.Errorf("read token: %w", err)
	case !isUsable(token, now):
		return store.Token{}, badToken()
	}
	return token, nil
}

// logout closes the session.
func (a *Access) logout(w http.ResponseWriter, r *http.Request) {
	if err := a.closeSession(r); err != nil {
		a.refuse(w, r, unavailable(err))
		return
	}
	if name, ok := cookieName(r, sessionCookie); ok {
		setCookie(w, name, "", -1, http.SameSiteStrictMode)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// sentence is a problem for a person.
func sentence(p *Problem) string {
	if p.Status == http.StatusTooManyRequests {
		return "Try again in " + strconv.FormatInt(wholeSeconds(p.retryAfter), 10) + " s."
	}
	return strings.ToUpper(p.Detail[:1]) + p.Detail[1:] + "."
}
