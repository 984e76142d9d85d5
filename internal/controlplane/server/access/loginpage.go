package access

import (
	"bytes"
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
	//go:embed again.html
	againHTML string
	//go:embed login.css
	loginCSS []byte

	loginPage = template.Must(template.New("login").Parse(loginHTML))
	againPage = template.Must(template.New("again").Parse(againHTML))
)

// loginForm is what login.html shows.
type loginForm struct {
	Next    string
	Message string // what went wrong; empty at first
	// SignOn offers single sign-on, and ProviderAway says that it did not work when it was tried last.
	SignOn, ProviderAway bool
}

func (a *Access) renderLogin(w http.ResponseWriter, code int, next, message string) {
	form := loginForm{Next: next, Message: message, SignOn: a.signOn != nil}
	form.ProviderAway = form.SignOn && a.signOn.IsAway()
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
