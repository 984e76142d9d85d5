package openid

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Config names a provider of OpenID Connect, and what this API is to it.
type Config struct {
	// Issuer is the provider's URL, exactly as its ID tokens have it.
	Issuer string
	// CAFile has the authorities of the provider's certificate, in PEM; empty for those of the system.
	CAFile string

	// ClientID is what the provider calls this API.
	ClientID string
	// ClientSecretFile has the secret of the two. It is read for each log-in, so it may be replaced. Empty for a public
	// client, which proves by PKCE alone that it is the one that began.
	ClientSecretFile string
	// RedirectURL is where the provider sends browsers back to.
	RedirectURL string

	// Scopes are asked for; openid has to be among them.
	Scopes []string
	// NameClaim and GroupsClaim are the claims of an ID token with a person's name and groups.
	NameClaim, GroupsClaim string

	// Timeout bounds each request to the provider.
	Timeout time.Duration
}

// DefaultConfig asks for what most providers have.
func DefaultConfig() Config {
	return Config{
		Scopes:    []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail},
		NameClaim: "email", GroupsClaim: "groups",
		Timeout: 10 * time.Second,
	}
}

// Validate names the first bad field and what it accepts. It reads no files.
func (c Config) Validate() error {
	for _, at := range []struct{ name, url string }{{"issuer", c.Issuer}, {"redirect URL", c.RedirectURL}} {
		if err := checkURL(at.url); err != nil {
			return fmt.Errorf("%s %q: %w", at.name, at.url, err)
		}
	}
	switch {
	case c.ClientID == "":
		return errors.New("client ID is empty: accepted is the name under which the provider knows this API")
	case !slices.Contains(c.Scopes, oidc.ScopeOpenID):
		return fmt.Errorf("scopes %q: accepted are such with %s among them", c.Scopes, oidc.ScopeOpenID)
	case c.Timeout <= 0:
		return fmt.Errorf("timeout of %v: accepted is more than 0", c.Timeout)
	case c.NameClaim == "" || c.GroupsClaim == "":
		return errors.New("claim of names or of groups is empty: accepted is the name of a claim, such as email and groups")
	}
	return nil
}

// checkURL accepts what [checkEndpoint] does, without a query.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && (u.RawQuery != "" || u.ForceQuery) {
		return errors.New("accepted is a URL without a query")
	}
	return checkEndpoint(text)
}

// checkEndpoint accepts what nobody else can read or answer: HTTPS, and plain HTTP to loopback.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return errors.New("accepted is a URL that begins with https://, or with http:// for loopback")
	}
	return nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost"
}
