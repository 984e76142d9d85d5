package auth

import (
	"crypto/tls"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/threeport/threeport-agent/internal/server/auth/openid"
)

// Config says whom the API serves.
type Config struct {
	// Enabled asks every request for a credential. Without it everyone is an administrator.
	Enabled bool

	// Hosts are names at which browsers are served without authentication, besides localhost and IP addresses.
	Hosts []string

	// CertificateRole is that of a client certificate that names none: its subject has no organization that begins with
	// "threeport:". Installations of v0 have such certificates, for agents and everything else.
	CertificateRole Role

	// Trusted tells whether the client certificate of a connection would still be taken: the authorities may have changed
	// since its handshake. Nil if they never do.
	Trusted func(*tls.ConnectionState) bool

	// PublicPaths need no principal, besides /healthz, /readyz, /login and /logout. One that ends in a slash covers all
	// below it.
	PublicPaths []string

	// AgentRate bounds the requests of each cluster's agents, ViewerRate those of each viewer. Administrators have no
	// bound: certificates of v0 are such.
	AgentRate  Rate
	ViewerRate Rate

	// SingleSignOn lets people log in as who they are elsewhere.
	SingleSignOn SingleSignOn
}

// Rate is a token bucket.
type Rate struct {
	// PerSecond is how many requests are taken over time; 0 is no bound.
	PerSecond float64
	// Burst is how many are taken at once.
	Burst int
}

// DefaultConfig asks for credentials, and takes certificates as v0 does.
func DefaultConfig() Config {
	return Config{
		Enabled:         true,
		CertificateRole: RoleAdmin,
		PublicPaths:     []string{"/page/"},
		AgentRate:       Rate{PerSecond: 200, Burst: 400},
		ViewerRate:      Rate{PerSecond: 50, Burst: 200},
		SingleSignOn:    SingleSignOn{Config: openid.DefaultConfig()},
	}
}

// Validate names the first bad field and what it accepts.
func (c Config) Validate() error {
	switch c.CertificateRole {
	case RoleViewer, RoleAdmin:
	case RoleAgent:
		return fmt.Errorf("certificate role %q: accepted are %s and %s; an agent's certificate says so itself, and its cluster",
			c.CertificateRole, RoleViewer, RoleAdmin)
	default:
		return fmt.Errorf("certificate role %q: accepted are %s and %s", c.CertificateRole, RoleViewer, RoleAdmin)
	}
	for _, p := range c.PublicPaths {
		if trimmed := strings.TrimSuffix(p, "/"); len(trimmed) < 2 || path.Clean(trimmed) != trimmed || trimmed[0] != '/' {
			return fmt.Errorf("public path %q: accepted is a clean path below /, such as /page/", p)
		}
	}
	for _, r := range []struct {
		name string
		rate Rate
	}{{"agent rate", c.AgentRate}, {"viewer rate", c.ViewerRate}} {
		finite := r.rate.PerSecond >= 0 && r.rate.PerSecond <= math.MaxFloat64 // not so is what is not a number
		if !finite || r.rate.PerSecond > 0 && r.rate.Burst < 1 {
			return fmt.Errorf("%s of %v requests a second with a burst of %d: accepted are 0 for no bound, or a rate above 0 with a burst of 1 or more",
				r.name, r.rate.PerSecond, r.rate.Burst)
		}
	}
	return c.SingleSignOn.validate(c.Enabled)
}
