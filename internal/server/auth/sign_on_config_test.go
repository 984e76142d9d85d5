package auth

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigValidate_SingleSignOn(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, good := startIssuer(t)
	alone := func(given func(*SingleSignOn)) func(*Config) {
		return func(c *Config) {
			c.SingleSignOn = DefaultConfig().SingleSignOn
			given(&c.SingleSignOn)
		}
	}
	for _, tc := range []struct {
		reason string
		change func(c *Config)
		want   string // part of the error
	}{
		{reason: "no issuer", change: func(c *Config) { c.SingleSignOn.Issuer = "" }, want: "--oidc-issuer is required"},
		{reason: "only groups", change: alone(func(s *SingleSignOn) { s.AdminGroups = []string{"root"} }), want: "--oidc-issuer is required"},
		{reason: "only a name claim", change: alone(func(s *SingleSignOn) { s.NameClaim = "name" }), want: "--oidc-issuer is required"},
		{reason: "only a groups claim", change: alone(func(s *SingleSignOn) { s.GroupsClaim = "roles" }), want: "--oidc-issuer is required"},
		{reason: "only scopes", change: alone(func(s *SingleSignOn) { s.Scopes = []string{"openid"} }), want: "--oidc-issuer is required"},
		{reason: "no authentication", change: func(c *Config) { c.Enabled = false }, want: "requires authentication"},
		{
			reason: "an issuer with http",
			change: func(c *Config) { c.SingleSignOn.Issuer = "http://id.example" },
			want:   `issuer "http://id.example": must be an https URL`,
		},
		{reason: "an issuer that is not a URL", change: func(c *Config) { c.SingleSignOn.Issuer = "id.example" }, want: "must be an https URL"},
		{
			reason: "an issuer with a query",
			change: func(c *Config) { c.SingleSignOn.Issuer = "https://id.example/?a=b" },
			want:   "without a query",
		},
		{reason: "no client", change: func(c *Config) { c.SingleSignOn.ClientID = "" }, want: "client ID: must be"},
		{reason: "no redirect URL", change: func(c *Config) { c.SingleSignOn.RedirectURL = "" }, want: "redirect URL"},
		{
			reason: "a redirect URL with http",
			change: func(c *Config) { c.SingleSignOn.RedirectURL = "http://threeport.example" + CallbackPath },
			want:   "redirect URL",
		},
		{
			reason: "another redirect URL",
			change: func(c *Config) { c.SingleSignOn.RedirectURL = "https://threeport.example/" },
			want:   "with the path " + CallbackPath,
		},
		{
			reason: "no groups",
			change: func(c *Config) { c.SingleSignOn.ViewerGroups, c.SingleSignOn.AdminGroups = nil, nil },
			want:   "--oidc-viewer-group or --oidc-admin-group is required",
		},
		{reason: "a group without a name", change: func(c *Config) { c.SingleSignOn.ViewerGroups = []string{""} }, want: "must not be empty"},
		{reason: "other scopes", change: func(c *Config) { c.SingleSignOn.Scopes = []string{"email"} }, want: "must include openid"},
		{reason: "no timeout", change: func(c *Config) { c.SingleSignOn.Timeout = 0 }, want: "must be above 0"},
		{reason: "no claim", change: func(c *Config) { c.SingleSignOn.GroupsClaim = "" }, want: "must be the name of a claim"},
		{reason: "no secret", change: func(c *Config) { c.SingleSignOn.ClientSecretFile = "/nowhere/secret" }, want: "/nowhere/secret"},
		{reason: "an empty secret", change: func(c *Config) { c.SingleSignOn.ClientSecretFile = empty }, want: "empty is empty"},
		{reason: "no authorities", change: func(c *Config) { c.SingleSignOn.CAFile = "/nowhere/ca" }, want: "/nowhere/ca"},
		{reason: "empty authorities", change: func(c *Config) { c.SingleSignOn.CAFile = empty }, want: "no certificate in"},
	} {
		config := good.config
		tc.change(&config)
		a, err := New(newFakeStore(), config, slog.New(slog.DiscardHandler))
		if err == nil {
			a.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
		}
	}
}
