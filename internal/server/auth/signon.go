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

// The paths of single sign-on: where a browser leaves for the identity provider, and where it comes back.
const (
	signOnPath   = "/login/sso"
	CallbackPath = signOnPath + "/callback"
)

// flowCookie is the name of the cookie that a browser has between the two, and flowLife for how long. It is Lax: the
// provider sends the browser back, and with that no Strict one is sent. No other site can set it (see [hostPrefix]), so
// that nobody can be made to finish a log-in that somebody else began.
const (
	flowCookie = "threeport-login"
	flowLifetime   = 10 * time.Minute
)

// maxSubject is how long a person's subject is at most, in bytes (OpenID Connect Core 1.0, section 2).
const maxSubject = 255

// beginSignOn sends a browser to the identity provider.
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

// finishSignOn opens a session for the person whom the identity provider names.
//
// The browser comes from another site, and would not send the session's cookie, which is Strict, if it were redirected
// now. So it is given a page of this site, which sends it on.
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
	a.audit(who, p.Role, r, http.StatusOK)
	render(w, http.StatusOK, redirectPage, next)
}

// signIn finds out who came back, opens a session, and says where to go. The principal is known although there is an
// error if it is somebody who may not come in.
func (a *Authenticator) completeSignOn(w http.ResponseWriter, r *http.Request) (p Principal, next string, err error) {
	next = localPath("")
	cookie, ok := cookieName(r, sessionCookie)
	if !ok {
		return p, next, signOnNeedsTLS()
	}
	address, now := clientAddress(r.RemoteAddr), a.now()
	flow, err := consumeFlow(w, r, now)
	if err != nil {
		return p, next, err
	}
	next = localPath(flow.Next)
	if wait := a.logins.reserve(address, now); wait > 0 {
		return p, next, tooManyRequests(wait)
	}
	person, err := a.identifyPerson(r, flow)
	if err != nil {
		return p, next, err
	}
	role, ok := a.config.SingleSignOn.roleOf(person.Groups)
	p = personPrincipal(person.Subject, personName(person), role)
	if !ok {
		return p, next, forbidden("you are known as " + p.Name + ", and in none of the groups that may see this. " +
			"Ask for one of these at your identity provider: " + strings.Join(a.config.SingleSignOn.allGroups(), ", "))
	}
	if err := a.openPersonSession(w, r, cookie, person, role); err != nil {
		return p, next, err
	}
	a.logins.reset(address)
	return p, next, nil
}

// takeFlow is the log-in that a browser comes back from. It is good for one try. Where there is none, that is no attempt
// to log in, neither counted nor recorded: any site can send its visitors here.
func consumeFlow(w http.ResponseWriter, r *http.Request, now time.Time) (openid.Flow, error) {
	name, _ := cookieName(r, flowCookie)
	cookies := r.CookiesNamed(name)
	if len(cookies) != 1 {
		return openid.Flow{}, newProblem(http.StatusBadRequest, "this browser has not begun to sign in here: that has ended, or began at another address. Sign in again")
	}
	flow, ok := openid.ParseFlow(cookies[0].Value, now)
	if ok && !flow.MatchesState(r.URL.Query().Get("state")) {
		return openid.Flow{}, newProblem(http.StatusBadRequest, "this is the end of another attempt to sign in than the one that this browser began last. Sign in again")
	}
	setCookie(w, name, "", -1, http.SameSiteLaxMode)
	if !ok {
		return openid.Flow{}, newProblem(http.StatusBadRequest, "it took too long to sign in. Sign in again")
	}
	return flow, nil
}

// personOf asks the identity provider who came back.
func (a *Authenticator) identifyPerson(r *http.Request, flow openid.Flow) (openid.Person, error) {
	code := r.URL.Query().Get("code")
	if code == "" { // RFC 6749, section 4.1.2.1; what it says is not repeated, since anybody may have written it
		return openid.Person{}, unauthenticated("the identity provider did not sign you in. Sign in again, or ask who runs it")
	}
	person, err := a.signOn.Person(r.Context(), flow, code)
	if err == nil && !isASCIIWord(person.Subject, maxSubject) {
		err = fmt.Errorf("%w: its subject is no word of ASCII", openid.ErrRefused)
	}
	switch {
	case errors.Is(err, openid.ErrRefused):
		problem := unauthenticated("the identity provider's answer does not count here. Sign in again; if that does not help, the log of this API says why")
		problem.cause = err
		return person, problem
	case err != nil:
		problem := providerUnavailable()
		problem.cause = err
		return person, problem
	}
	return person, nil
}

// openPersonsSession opens a session for a person: as any other it belongs to a token, by which an administrator can see and
// end it. Nobody has the token itself.
func (a *Authenticator) openPersonSession(w http.ResponseWriter, r *http.Request, cookie string, person openid.Person, role Role) error {
	key := digestOf(newSession())
	token, err := a.store.CreateToken(r.Context(), store.Token{
		Name: personName(person), Subject: person.Subject, Role: string(role), ExpiresAt: new(a.now().Add(sessionLifetime)),
	}, key[:])
	if err != nil {
		return fmt.Errorf("create token of a log-in: %w", err)
	}
	return a.openSession(w, r, cookie, token)
}

// personName is a person's name as one plain word, as records and tables have it.
func personName(person openid.Person) string {
	return strings.ReplaceAll(printable(person.Name), " ", "_")
}

func personPrincipal(subject, name string, role Role) Principal {
	return Principal{Name: strings.TrimSpace(subject + " " + name), Role: role, Credential: CredentialSignOn}
}

func signOnNeedsTLS() *Problem {
	return newProblem(http.StatusBadRequest, "single sign-on works over TLS only")
}

// providerAway is the answer while the identity provider does not answer. Why is in the log.
func providerUnavailable() *Problem {
	p := newProblem(http.StatusServiceUnavailable, "the identity provider does not answer as it should. Try again in a moment, or sign in with a token; the log of this API says why")
	p.retryAfter = 5 * time.Second
	return p
}
