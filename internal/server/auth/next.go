package auth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxNext bounds where to go after log-in, in bytes.
const maxNext = 2048

// localPath is given if it is a path of this API, with a query or without; else the start page. Browsers read a
// backslash as a slash, drop tabs and line ends, and take //host for another host.
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
	// Cleaned as the redirect will be: /.//host would become //host.
	if strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, "/.") {
		return home
	}
	if slices.Contains([]string{loginPath, logoutPath, signOnPath, CallbackPath}, u.Path) {
		return home
	}
	return given
}

// wantsPage tells whether a request is a browser's, for a page.
func acceptsHTML(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/html")
}

// askToLogin sends a browser to the log-in page, which will send it back.
//
// A link on another site brings no cookie, though there may be a session: that is what SameSite=Strict means. So the
// browser is first made to ask again, from here.
func redirectToLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.RequestURI())
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		render(w, http.StatusUnauthorized, redirectPage, next)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, loginPath+"?next="+url.QueryEscape(next), http.StatusSeeOther)
}
