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
		{"no issuer", func(c *Config) { c.SingleSignOn.Issuer = "" }, "--oidc-issuer is required"},
		{"groups alone", alone(func(s *SingleSignOn) { s.AdminGroups = []string{"root"} }), "--oidc-issuer is required"},
		{"a claim of names alone", alone(func(s *SingleSignOn) { s.NameClaim = "name" }), "--oidc-issuer is required"},
		{"a claim of groups alone", alone(func(s *SingleSignOn) { s.GroupsClaim = "roles" }), "--oidc-issuer is required"},
		{"scopes alone", alone(func(s *SingleSignOn) { s.Scopes = []string{"openid"} }), "--oidc-issuer is required"},
		{"no authentication", func(c *Config) { c.Enabled = false }, "requires authentication"},
		{"an issuer in the clear", func(c *Config) { c.SingleSignOn.Issuer = "http://id.example" }, `issuer "http://id.example": must be an https URL`},
		{"an issuer that is no URL", func(c *Config) { c.SingleSignOn.Issuer = "id.example" }, "must be an https URL"},
		{"an issuer with a query", func(c *Config) { c.SingleSignOn.Issuer = "https://id.example/?a=b" }, "without a query"},
		{"no client", func(c *Config) { c.SingleSignOn.ClientID = "" }, "client ID: must be"},
		{"no redirect URL", func(c *Config) { c.SingleSignOn.RedirectURL = "" }, "redirect URL"},
		{"a redirect URL in the clear", func(c *Config) { c.SingleSignOn.RedirectURL = "http://threeport.example" + CallbackPath }, "redirect URL"},
		{"another redirect URL", func(c *Config) { c.SingleSignOn.RedirectURL = "https://threeport.example/" }, "with the path " + CallbackPath},
		{"no groups", func(c *Config) { c.SingleSignOn.ViewerGroups, c.SingleSignOn.AdminGroups = nil, nil }, "--oidc-viewer-group or --oidc-admin-group is required"},
		{"a group without a name", func(c *Config) { c.SingleSignOn.ViewerGroups = []string{""} }, "must not be empty"},
		{"other scopes", func(c *Config) { c.SingleSignOn.Scopes = []string{"email"} }, "must include openid"},
		{"no time", func(c *Config) { c.SingleSignOn.Timeout = 0 }, "must be above 0"},
		{"no claim", func(c *Config) { c.SingleSignOn.GroupsClaim = "" }, "must be the name of a claim"},
		{"no secret", func(c *Config) { c.SingleSignOn.ClientSecretFile = "/nowhere/secret" }, "/nowhere/secret"},
		{"an empty secret", func(c *Config) { c.SingleSignOn.ClientSecretFile = empty }, "empty is empty"},
		{"no authorities", func(c *Config) { c.SingleSignOn.CAFile = "/nowhere/ca" }, "/nowhere/ca"},
		{"empty authorities", func(c *Config) { c.SingleSignOn.CAFile = empty }, "no certificate in"},
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
