package auth

import (
	"bytes"
	"cmp"
	_ "embed" // the page is part of the binary
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// pagePolicy allows the style sheet and the form, and no scripts.
const pagePolicy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var (
	//go:embed login.html
	loginHTML string
	//go:embed redirect.html
	redirectHTML string
	//go:embed login.css
	loginCSS []byte

	loginPage    = template.Must(template.New("login").Parse(loginHTML))
	redirectPage = template.Must(template.New("redirect").Parse(redirectHTML))
)

// loginForm is the input of login.html.
type loginForm struct {
	Next    string
	Heading string // the error in a few words
	Message string // the error in a sentence; empty without an error
	// BadToken reports that the token is wrong.
	BadToken bool
	// SignOn offers single sign-on. ProviderUnavailable reports that the last request to the provider failed.
	SignOn, ProviderUnavailable bool
}

// headings are the headings of errors by status.
var headings = map[int]string{
	http.StatusUnauthorized:       "You are not signed in",
	http.StatusForbidden:          "You may not sign in",
	http.StatusTooManyRequests:    "Too many attempts failed",
	http.StatusServiceUnavailable: "Not available now",
}

// renderLogin shows the form with the error for code; 200 means none.
func (a *Authenticator) renderLogin(w http.ResponseWriter, code int, form loginForm) {
	form.Heading = cmp.Or(headings[code], "Sign-in failed")
	form.SignOn = a.signOn != nil
	form.ProviderUnavailable = form.SignOn && a.signOn.IsUnavailable()
	render(w, code, loginPage, form)
}

// render answers with a page.
func render(w http.ResponseWriter, code int, page *template.Template, content any) {
	var body bytes.Buffer
	if err := page.Execute(&body, content); err != nil {
		http.Error(w, "rendering the page failed", http.StatusInternalServerError)
		return
	}
	headers := w.Header()
	headers.Set("Content-Type", "text/html; charset=utf-8")
	headers.Set("Content-Length", strconv.Itoa(body.Len()))
	headers.Set("Cache-Control", "no-store")
	headers.Set("Content-Security-Policy", pagePolicy)
	headers.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, older browsers would send the form with the origin null, which is rejected.
	headers.Set("Referrer-Policy", "same-origin")
	if code == http.StatusUnauthorized {
		headers.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // the client is gone
}

// serveStyle serves the style sheet.
func serveStyle(w http.ResponseWriter, _ *http.Request) {
	headers := w.Header()
	headers.Set("Content-Type", "text/css; charset=utf-8")
	headers.Set("Content-Length", strconv.Itoa(len(loginCSS)))
	headers.Set("Cache-Control", "max-age=300")
	headers.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(loginCSS) // the client is gone
}

// maxNext limits the path to go to after log-in, in bytes.
const maxNext = 2048

// localPath returns given if it is a path of this API, else the start page. It takes into account that browsers read a
// backslash as a slash, drop tabs and line breaks, and take //host for another host.
func localPath(given string) string {
	const home = "/"
	if len(given) > maxNext || !strings.HasPrefix(given, "/") ||
		strings.ContainsRune(given, '\\') || strings.IndexFunc(given, notGraphicASCII) >= 0 {
		return home
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil {
		return home
	}
	// As the redirect cleans the path: /.//host would become //host.
	if strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, "/.") {
		return home
	}
	if slices.Contains([]string{loginPath, logoutPath, signOnPath, CallbackPath}, u.Path) {
		return home
	}
	return given
}

// acceptsHTML reports whether a browser requests a page.
func acceptsHTML(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/html")
}

// redirectToLogin redirects a browser to the log-in page, which returns it to the requested page.
//
// A SameSite=Strict cookie is not sent with a link from another site. So such a request is first repeated from a page
// of this site, as there may be a session.
func redirectToLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.RequestURI())
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		render(w, http.StatusUnauthorized, redirectPage, next)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, loginPath+"?next="+url.QueryEscape(next), http.StatusSeeOther)
}
