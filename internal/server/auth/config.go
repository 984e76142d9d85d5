package auth

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth/openid"
)

// Config configures authentication and authorization.
type Config struct {
	// Enabled requires a credential for each request. Without it, everyone is an administrator.
	Enabled bool

	// Hosts are the host names under which browsers are served without authentication, besides localhost and IP
	// addresses.
	Hosts []string

	// CertificateRole is the role of a client certificate without an organization, or with that of Threeport's own control plane.
	// Without a CertificateRole, such a certificate is refused. Installations of v0 have such certificates.
	CertificateRole Role

	// VerifyCertificate verifies the client certificate of a connection, with each request: the authorities may change. Without it
	// no client has a certificate.
	VerifyCertificate func(*tls.ConnectionState) error

	// AgentRate limits the requests of each cluster's agents, ViewerRate those of each viewer, and AdminRate those of each
	// administrator. Agents of v0, whose certificates have the role of CertificateRole, have its rate for each address,
	// since they share a certificate.
	AgentRate, ViewerRate, AdminRate Rate

	// SessionLifetime is the lifetime of a session. It is shorter if its token expires before.
	SessionLifetime time.Duration

	// SingleSignOn configures log-in with an identity provider.
	SingleSignOn SingleSignOn
}

// Rate configures a token bucket.
type Rate struct {
	// PerSecond is the sustained rate of requests; 0 means no limit.
	PerSecond float64
	// Burst is the size of the bucket.
	Burst int
}

// DefaultConfig requires credentials that have a role.
func DefaultConfig() Config {
	return Config{
		Enabled:      true,
		AgentRate:    Rate{PerSecond: 200, Burst: 400},
		ViewerRate:   Rate{PerSecond: 50, Burst: 200},
		AdminRate:    Rate{PerSecond: 1000, Burst: 4000},
		SingleSignOn: SingleSignOn{Config: openid.DefaultConfig()},

		SessionLifetime: 12 * time.Hour,
	}
}

// Validate returns an error that names the first invalid field and its accepted values.
func (c Config) Validate() error {
	switch c.CertificateRole {
	case "", RoleViewer, RoleAdmin:
	case RoleAgent:
		return fmt.Errorf("certificate role %q: must be %s or %s; the certificate of an agent has its own role and cluster",
			c.CertificateRole, RoleViewer, RoleAdmin)
	default:
		return fmt.Errorf("certificate role %q: must be %s or %s", c.CertificateRole, RoleViewer, RoleAdmin)
	}
	for _, r := range []struct {
		name string
		rate Rate
	}{{"agent rate", c.AgentRate}, {"viewer rate", c.ViewerRate}, {"admin rate", c.AdminRate}} {
		finite := r.rate.PerSecond >= 0 && r.rate.PerSecond <= math.MaxFloat64 // false for NaN
		if !finite || r.rate.PerSecond > 0 && r.rate.Burst < 1 {
			return fmt.Errorf("%s of %v requests a second with a burst of %d: must be 0 for no limit, or above 0 with a burst of at least 1",
				r.name, r.rate.PerSecond, r.rate.Burst)
		}
	}
	if c.SessionLifetime < minSessionLifetime || c.SessionLifetime > maxSessionLifetime {
		return fmt.Errorf("session lifetime %v: must be at least a minute and at most 30 days", c.SessionLifetime)
	}
	return c.SingleSignOn.validate(c.Enabled)
}

// SingleSignOn configures the identity provider and the roles of its groups. Without an issuer there is no single
// sign-on.
type SingleSignOn struct {
	openid.Config

	// Members of ViewerGroups are viewers, members of AdminGroups administrators. Other people may not log in.
	ViewerGroups, AdminGroups []string
}

func (s SingleSignOn) isSet() bool { return s.Issuer != "" }

// validate returns an error that names the invalid flag. enabled is Config.Enabled.
func (s SingleSignOn) validate(enabled bool) error {
	if !s.isSet() {
		if !reflect.DeepEqual(s, DefaultConfig().SingleSignOn) {
			return errors.New("single sign-on: --oidc-issuer is required with other --oidc flags")
		}
		return nil
	}
	if !enabled {
		return errors.New("single sign-on requires authentication: remove --auth-enabled=false or the --oidc flags")
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("single sign-on: %w", err)
	}
	if u, err := url.Parse(s.RedirectURL); err != nil || u.Path != CallbackPath {
		return fmt.Errorf("single sign-on: redirect URL %q: must be the public URL of this API with the path %s", s.RedirectURL, CallbackPath)
	}
	if len(s.allGroups()) == 0 || slices.Contains(s.allGroups(), "") {
		return errors.New("single sign-on: --oidc-viewer-group or --oidc-admin-group is required, and must not be empty")
	}
	return nil
}

func (s SingleSignOn) allGroups() []string { return slices.Concat(s.ViewerGroups, s.AdminGroups) }

// roleOf returns the highest role of the groups; ok is false if they have none.
func (s SingleSignOn) roleOf(groups []string) (role Role, ok bool) {
	has := func(group string) bool { return slices.Contains(groups, group) }
	switch {
	case slices.ContainsFunc(s.AdminGroups, has):
		return RoleAdmin, true
	case slices.ContainsFunc(s.ViewerGroups, has):
		return RoleViewer, true
	default:
		return "", false
	}
}
