package auth

import (
	"bytes"
	"cmp"
	_ "embed" // the page is in the binary
	"html/template"
	"net/http"
	"strconv"
)

// pagePolicy lets the log-in page load its style and send its form, and nothing else: there are no scripts.
const pagePolicy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var (
	//go:embed login.html
	loginHTML string
	//go:embed redirect.html
	redirectHTML string
	//go:embed login.css
	loginCSS []byte

	loginPage = template.Must(template.New("login").Parse(loginHTML))
	redirectPage = template.Must(template.New("redirect").Parse(redirectHTML))
)

// loginForm is what login.html shows.
type loginForm struct {
	Next    string
	Heading string // what went wrong, in a few words
	Message string // and in a sentence; empty at first
	// BadToken is true if it is the token's fault.
	BadToken bool
	// SignOn offers single sign-on, and ProviderAway says that it did not work when it was tried last.
	SignOn, ProviderUnavailable bool
}

// headings are what the page says of an answer of each status.
var headings = map[int]string{
	http.StatusUnauthorized:       "You are not signed in",
	http.StatusForbidden:          "You may not sign in",
	http.StatusTooManyRequests:    "Too many attempts failed",
	http.StatusServiceUnavailable: "This does not work now",
}

// renderLogin shows the form, which says what is wrong unless code is 200.
func (a *Authenticator) renderLogin(w http.ResponseWriter, code int, form loginForm) {
	form.Heading = cmp.Or(headings[code], "This did not work")
	form.SignOn = a.signOn != nil
	form.ProviderUnavailable = form.SignOn && a.signOn.IsUnavailable()
	render(w, code, loginPage, form)
}

// render answers with a page.
func render(w http.ResponseWriter, code int, page *template.Template, content any) {
	var body bytes.Buffer
	if err := page.Execute(&body, content); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	headers := w.Header()
	headers.Set("Content-Type", "text/html; charset=utf-8")
	headers.Set("Content-Length", strconv.Itoa(body.Len()))
	headers.Set("Cache-Control", "no-store")
	headers.Set("Content-Security-Policy", pagePolicy)
	headers.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: then older browsers send the form with the origin null, which is refused.
	headers.Set("Referrer-Policy", "same-origin")
	if code == http.StatusUnauthorized {
		headers.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // the client has gone: there is no one to tell
}

// serveStyle is the page's style sheet.
func serveStyle(w http.ResponseWriter, _ *http.Request) {
	headers := w.Header()
	headers.Set("Content-Type", "text/css; charset=utf-8")
	headers.Set("Content-Length", strconv.Itoa(len(loginCSS)))
	headers.Set("Cache-Control", "max-age=300")
	headers.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(loginCSS) // the client has gone: there is no one to tell
}
