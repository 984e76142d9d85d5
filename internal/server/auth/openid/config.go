package openid

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/threeport/threeport-agent/internal/loopback"
)

// Config describes an OpenID Connect provider and this client.
type Config struct {
	// Issuer is the provider's URL, exactly as in its ID tokens.
	Issuer string
	// CAFile has the certificate authorities of the provider in PEM; empty for those of the system.
	CAFile string

	// ClientID is the client's ID at the provider.
	ClientID string
	// ClientSecretFile has the client secret. It is read for each log-in, so it can be rotated. Empty means a public
	// client, which relies on PKCE alone.
	ClientSecretFile string
	// RedirectURL is the callback to which the provider redirects browsers.
	RedirectURL string

	// Scopes are the requested scopes; they must include openid.
	Scopes []string
	// NameClaim and GroupsClaim are the ID token's claims with the name and groups of a person.
	NameClaim, GroupsClaim string

	// Timeout limits each request to the provider.
	Timeout time.Duration
}

// DefaultConfig fits most providers.
func DefaultConfig() Config {
	return Config{
		Scopes:    []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail},
		NameClaim: "email", GroupsClaim: "groups",
		Timeout: 10 * time.Second,
	}
}

// Validate returns an error that names the first invalid field and its accepted values. It reads no files.
func (c Config) Validate() error {
	for _, at := range []struct{ name, url string }{{"issuer", c.Issuer}, {"redirect URL", c.RedirectURL}} {
		if err := checkURL(at.url); err != nil {
			return fmt.Errorf("%s %q: %w", at.name, at.url, err)
		}
	}
	switch {
	case c.ClientID == "":
		return errors.New("client ID: must be the ID of this API at the provider")
	case !slices.Contains(c.Scopes, oidc.ScopeOpenID):
		return fmt.Errorf("scopes %q: must include %s", c.Scopes, oidc.ScopeOpenID)
	case c.Timeout <= 0:
		return fmt.Errorf("timeout %v: must be above 0", c.Timeout)
	case c.NameClaim == "" || c.GroupsClaim == "":
		return errors.New("name claim and groups claim: must be the name of a claim, such as email and groups")
	}
	return nil
}

// checkURL accepts the URLs of [checkEndpoint] without a query.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && (u.RawQuery != "" || u.ForceQuery) {
		return errors.New("must be a URL without a query")
	}
	return checkEndpoint(text)
}

// checkEndpoint accepts URLs with protected traffic: HTTPS, and HTTP to loopback.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !loopback.IsHost(u.Hostname())) {
		return errors.New("must be an https URL, or an http URL of loopback")
	}
	return nil
}
