package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// checkHost refuses a browser that knows an API without authentication by a foreign name: whoever owns a name can have it
// lead here, and then their page is of this site as far as the browser can tell (DNS rebinding). An address cannot be made to
// lead elsewhere, localhost leads to the browser's own machine, and the other names are the configuration's. Clients that
// are no browsers load no pages, and may call the API what they like.
func (a *Authenticator) checkHost(r *http.Request) error {
	if a.config.Enabled || !isBrowser(r) || a.isOwnHost(r.Host) {
		return nil
	}
	return newProblem(http.StatusMisdirectedRequest, "without authentication a browser is served at an IP address, at localhost "+
		"and at the host of --bind-address only: use one of these, or enable authentication")
}

// browserHeaders are those that a page cannot keep its browser from sending. Sec-Fetch-Site alone does not do: over plain
// HTTP it goes to loopback only (https://www.w3.org/TR/fetch-metadata), and a page's reads of its own host have no Origin.
var browserHeaders = []string{"Origin", "Referer", "Sec-Fetch-Site", "Accept-Language"}

// isBrowser tells whether a browser may have sent a request.
func isBrowser(r *http.Request) bool {
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") ||
		slices.ContainsFunc(browserHeaders, func(name string) bool { return len(r.Header[name]) > 0 })
}

// isOwnHost tells whether a Host header names this API for certain.
func (a *Authenticator) isOwnHost(given string) bool {
	host, _, err := net.SplitHostPort(given)
	if err != nil { // it has no port
		host = strings.TrimSuffix(strings.TrimPrefix(given, "["), "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		host != "" && slices.ContainsFunc(a.config.Hosts, func(own string) bool { return strings.EqualFold(own, host) })
}
