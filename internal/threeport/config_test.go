package threeport

import (
	"strings"
	"testing"
)

func TestConfigBaseURL(t *testing.T) {
	for _, tc := range []struct {
		reason string
		server string
		auth   bool
		want   string // the base URL, or
		bad    string // a part of the error
	}{
		{reason: "authentication implies https", server: "api.example:1323", auth: true, want: "https://api.example:1323"},
		{reason: "no authentication implies http", server: "api.example", want: "http://api.example"},
		{reason: "a scheme is kept", server: "https://api.example/", want: "https://api.example"},
		{reason: "a path is kept", server: "https://api.example/threeport/", auth: true, want: "https://api.example/threeport"},
		{reason: "an IPv6 address in brackets", server: "[::1]:1323", want: "http://[::1]:1323"},
		{reason: "empty", bad: "Server is empty"},
		{reason: "mutual TLS has no plain http", server: "http://api.example", auth: true, bad: "plain http"},
		{reason: "another scheme", server: "ftp://api.example", bad: "http or https URL"},
		{reason: "a port beyond the range", server: "api.example:65536", bad: "the port must be"},
		{reason: "an empty port", server: "api.example:", bad: "the port must be"},
		{reason: "no host", server: "https://:443", bad: "no host"},
		{reason: "a query", server: "https://api.example?x=1", bad: "query"},
		{reason: "not a URL", server: "https://api.example:port", bad: "cannot be read"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := DefaultConfig()
			c.Server, c.AuthEnabled = tc.server, tc.auth
			u, err := c.baseURL()
			switch {
			case tc.bad == "" && (err != nil || u.String() != tc.want):
				t.Errorf("got %v, %v, want %s", u, err, tc.want)
			case tc.bad != "" && (err == nil || !strings.Contains(err.Error(), tc.bad)):
				t.Errorf("got %v, %v, want an error with %q", u, err, tc.bad)
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*Config)
		bad    string // empty: valid
	}{
		{"the defaults with a server", func(*Config) {}, ""},
		{"no certificate", func(c *Config) { c.CertFile = "" }, "CertFile"},
		{"no key", func(c *Config) { c.KeyFile = "" }, "KeyFile"},
		{"no authorities", func(c *Config) { c.CAFile = "" }, "CAFile"},
		{"no files without authentication", func(c *Config) {
			c.AuthEnabled, c.CertFile, c.KeyFile, c.CAFile = false, "", "", ""
		}, ""},
		{"a token over TLS", func(c *Config) { c.TokenFile = "token" }, ""},
		{"a token in the clear", func(c *Config) { c.AuthEnabled, c.TokenFile = false, "token" }, "TokenFile"},
		{"a token in the clear that stays here", func(c *Config) {
			c.Server, c.AuthEnabled, c.TokenFile = "127.0.0.1:1", false, "token"
		}, ""},
		{"no timeout", func(c *Config) { c.Timeout = 0 }, "Timeout"},
		{"a password", func(c *Config) { c.Server = "https://user:hunter2@api.example" }, "user name or password"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := DefaultConfig()
			c.Server = "api.example"
			tc.change(&c)
			err := c.Validate()
			switch {
			case tc.bad == "" && err != nil:
				t.Errorf("valid, but: %v", err)
			case tc.bad != "" && (err == nil || !strings.Contains(err.Error(), tc.bad)):
				t.Errorf("got %v, want an error with %q", err, tc.bad)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}
