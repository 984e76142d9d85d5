package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth/openid"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// Paths of single sign-on: the start, and the callback of the identity provider.
const (
	signOnPath   = "/login/sso"
	CallbackPath = signOnPath + "/callback"
)

// flowCookie is the name of the cookie between start and callback, and flowLifetime its lifetime. It is SameSite=Lax,
// since the provider's redirect to the callback would not send a Strict cookie. No other site can set it (see
// [hostPrefix]), so a browser can only finish a log-in that it started itself.
const (
	flowCookie   = "threeport-login"
	flowLifetime = 10 * time.Minute
)

// maxSubject limits the subject of a person, in bytes (OpenID Connect Core 1.0, section 2).
const maxSubject = 255

// handleSignOn redirects a browser to the identity provider.
func (a *Authenticator) handleSignOn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	cookie, ok := cookieName(r, flowCookie)
	if !ok {
		a.renderLoginError(w, r, anonymous(r), next, signOnNeedsTLS())
		return
	}
	flow := openid.NewFlow(next, a.now().Add(flowLifetime))
	at, err := a.signOn.AuthURL(r.Context(), flow)
	if err != nil {
		a.renderLoginError(w, r, anonymous(r), next, providerUnavailable())
		return
	}
	setCookie(w, cookie, flow.String(), int(flowLifetime/time.Second), http.SameSiteLaxMode)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, at, http.StatusSeeOther) //nolint:gosec // the host is the identity provider's own
}

// handleCallback opens a session for the person that the identity provider names.
//
// The request comes from another site, so a redirect from here would not send the session's Strict cookie. Therefore
// the answer is a page of this site that redirects.
func (a *Authenticator) handleCallback(w http.ResponseWriter, r *http.Request) {
	p, next, err := a.completeSignOn(w, r)
	who := p.String()
	if p.Name == "" {
		who = anonymous(r)
	}
	if err != nil {
		a.renderLoginError(w, r, who, next, err)
		return
	}
	a.recordLogIn(p, r, http.StatusOK)
	render(w, http.StatusOK, redirectPage, next)
}

// completeSignOn identifies the person and opens a session. It returns the path to go to, and the principal of an
// identified person even if that may not log in.
func (a *Authenticator) completeSignOn(w http.ResponseWriter, r *http.Request) (p Principal, next string, err error) {
	next = localPath("")
	cookie, ok := cookieName(r, sessionCookie)
	if !ok {
		return p, next, signOnNeedsTLS()
	}
	address, now := ClientAddress(r.RemoteAddr), a.now()
	flow, err := consumeFlow(w, r, now)
	if err != nil {
		return p, next, err
	}
	next = localPath(flow.Next)
	if wait := a.limits.logins.reserve(address, now); wait > 0 {
		return p, next, tooManyRequests(wait)
	}
	person, err := a.identifyPerson(r, flow)
	if err != nil {
		return p, next, err
	}
	role, ok := a.config.SingleSignOn.roleOf(person.Groups)
	p = personPrincipal(person.Subject, personName(person), role)
	if !ok {
		return p, next, forbidden("your name is " + p.Name + ", and you are in none of the permitted groups. " +
			"Ask for one of these at your identity provider: " + strings.Join(a.config.SingleSignOn.allGroups(), ", "))
	}
	if wait := a.limits.sessions.reserve("person "+person.Subject, now); wait > 0 {
		return p, next, tooManyRequests(wait)
	}
	if err := a.openPersonSession(w, r, cookie, person, role); err != nil {
		return p, next, err
	}
	a.limits.logins.reset(address)
	return p, next, nil
}

// consumeFlow returns the flow of the browser's cookie and deletes the cookie. A request without one is neither rate
// limited nor recorded, since any site can cause it.
func consumeFlow(w http.ResponseWriter, r *http.Request, now time.Time) (openid.Flow, error) {
	name, _ := cookieName(r, flowCookie)
	cookies := r.CookiesNamed(name)
	if len(cookies) != 1 {
		return openid.Flow{}, newProblem(http.StatusBadRequest, "this browser has no pending sign-in: it ended, or began at another address. Sign in again")
	}
	flow, ok := openid.ParseFlow(cookies[0].Value, now)
	if ok && !flow.MatchesState(r.URL.Query().Get("state")) {
		return openid.Flow{}, newProblem(http.StatusBadRequest, "this sign-in is not the one that this browser began last. Sign in again")
	}
	setCookie(w, name, "", -1, http.SameSiteLaxMode)
	if !ok {
		return openid.Flow{}, newProblem(http.StatusBadRequest, "the sign-in took too long. Sign in again")
	}
	return flow, nil
}

// identifyPerson asks the identity provider who logged in.
func (a *Authenticator) identifyPerson(r *http.Request, flow openid.Flow) (openid.Person, error) {
	code := r.URL.Query().Get("code")
	if code == "" { // RFC 6749, section 4.1.2.1; the error is not shown, since anybody may have written it
		return openid.Person{}, unauthenticated("the identity provider did not sign you in. Sign in again, or ask its administrator")
	}
	person, err := a.signOn.Person(r.Context(), flow, code)
	if err == nil && !isASCIIWord(person.Subject, maxSubject) {
		err = fmt.Errorf("%w: the subject is not a printable ASCII word", openid.ErrRefused)
	}
	switch {
	case errors.Is(err, openid.ErrRefused):
		problem := unauthenticated("the identity provider's answer is not valid. Sign in again; if that does not help, see the log of this API")
		problem.cause = err
		return person, problem
	case err != nil:
		problem := providerUnavailable()
		problem.cause = err
		return person, problem
	}
	return person, nil
}

// openPersonSession opens a session for a person. An SSO session is backed by a secretless token, so revocation and
// caching work unchanged.
func (a *Authenticator) openPersonSession(w http.ResponseWriter, r *http.Request, cookie string, person openid.Person, role Role) error {
	key := digestOf(newSession())
	token, err := a.store.CreateToken(r.Context(), store.Token{
		Name: personName(person), Subject: person.Subject, Role: string(role), ExpiresAt: new(a.now().Add(a.config.SessionLifetime)),
	}, key[:])
	if err != nil {
		return fmt.Errorf("create token of SSO session: %w", err)
	}
	return a.openSession(w, r, cookie, token)
}

// personName is a person's name as one word.
func personName(person openid.Person) string {
	return strings.ReplaceAll(printable(person.Name), " ", "_")
}

func personPrincipal(subject, name string, role Role) Principal {
	return Principal{Name: strings.TrimSpace(subject + " " + name), Subject: subject, Role: role, Credential: CredentialSignOn}
}

func signOnNeedsTLS() *Problem {
	return newProblem(http.StatusBadRequest, "single sign-on requires TLS")
}

// providerUnavailable is the answer if the identity provider fails; the log has the cause.
func providerUnavailable() *Problem {
	p := newProblem(http.StatusServiceUnavailable, "the identity provider is not available. Try again in a moment, or sign in with a token; see the log of this API")
	p.retryAfter = 5 * time.Second
	return p
}
