package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// checkHost prevents DNS rebinding: the owner of a name can point it at this API, and a browser then treats their page
// as same-origin. So without authentication a browser must use a host that others cannot control: an IP address,
// localhost, or a configured name. Other clients load no pages and may use any host.
func (a *Authenticator) checkHost(r *http.Request) error {
	if a.config.Enabled || !isBrowser(r) || a.isOwnHost(r.Host) {
		return nil
	}
	return newProblem(http.StatusMisdirectedRequest, "without authentication, browsers must use an IP address, localhost "+
		"or the host of --bind-address; or enable authentication")
}

// browserHeaders are headers that a page cannot suppress. Sec-Fetch-Site alone is not enough: browsers send it over
// plain HTTP only to loopback (https://www.w3.org/TR/fetch-metadata), and same-origin reads have no Origin.
var browserHeaders = []string{"Origin", "Referer", "Sec-Fetch-Site", "Accept-Language"}

// isBrowser reports whether a browser may have sent the request.
func isBrowser(r *http.Request) bool {
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") ||
		slices.ContainsFunc(browserHeaders, func(name string) bool { return len(r.Header[name]) > 0 })
}

// isOwnHost reports whether only this API can have the Host header's name.
func (a *Authenticator) isOwnHost(given string) bool {
	host, _, err := net.SplitHostPort(given)
	if err != nil { // without a port
		host = strings.TrimSuffix(strings.TrimPrefix(given, "["), "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		host != "" && slices.ContainsFunc(a.config.Hosts, func(own string) bool { return strings.EqualFold(own, host) })
}

// checkOrigin rejects requests that other sites trigger in a browser. A browser adds cookies and certificates by
// itself, and can reach an API on loopback that needs neither; it does not add bearer tokens.
func (a *Authenticator) checkOrigin(r *http.Request) error {
	if len(r.Header["Authorization"]) > 0 {
		return nil
	}
	if a.origins.Check(r) != nil {
		return forbidden("cross-site requests are not allowed")
	}
	return nil
}
