package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// requestOf is a request of a principal at an address, with a body of known length.
func requestOf(t *testing.T, who auth.Principal, address string, body []byte) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), who), http.MethodPost, "/", bytes.NewReader(body))
	req.RemoteAddr = address
	return req
}

func TestSenderOf_DistinguishesSenders(t *testing.T) {
	type client struct {
		principal auth.Principal
		address   string
	}
	everyone := func(address string) client {
		return client{auth.Principal{Name: "everyone", Role: auth.RoleAdmin, Credential: auth.CredentialNone}, address}
	}
	cluster := func(uid, address string) client {
		return client{auth.Principal{Name: "agent", Role: auth.RoleAgent, ClusterUID: uid, Credential: auth.CredentialToken}, address}
	}
	for _, tc := range []struct {
		reason    string
		one, two  client
		different bool
	}{
		{reason: "a cluster at two addresses", one: cluster("a", "192.0.2.1:1"), two: cluster("a", "192.0.2.2:1")},
		{reason: "two clusters at one address", one: cluster("a", "192.0.2.1:1"), two: cluster("b", "192.0.2.1:1"), different: true},
		{reason: "a cluster and a client without one, at one address", one: cluster("a", "192.0.2.1:1"), two: everyone("192.0.2.1:1"), different: true},
		{
			reason: "a token and a session of one person",
			one:    client{auth.Principal{Name: "jane", Role: auth.RoleViewer, Credential: auth.CredentialToken}, "192.0.2.1:1"},
			two:    client{auth.Principal{Name: "jane", Role: auth.RoleViewer, Credential: auth.CredentialSession}, "192.0.2.1:2"},
		},
		{
			reason: "a viewer at two addresses",
			one:    client{auth.Principal{Name: "jane", Role: auth.RoleViewer, Credential: auth.CredentialToken}, "192.0.2.1:1"},
			two:    client{auth.Principal{Name: "jane", Role: auth.RoleViewer, Credential: auth.CredentialToken}, "192.0.2.2:1"},
		},
		{
			reason: "an upstream controller at two addresses", different: true,
			one: client{auth.Principal{Name: "upstream", Role: auth.RoleAdmin, Credential: auth.CredentialCertificate}, "192.0.2.1:1"},
			two: client{auth.Principal{Name: "upstream", Role: auth.RoleAdmin, Credential: auth.CredentialCertificate}, "192.0.2.2:1"},
		},
		{reason: "two connections", one: everyone("192.0.2.1:1"), two: everyone("192.0.2.1:2")},
		{reason: "two addresses", one: everyone("192.0.2.1:1"), two: everyone("192.0.2.2:1"), different: true},
		{reason: "one address in two notations", one: everyone("192.0.2.1:1"), two: everyone("[::ffff:192.0.2.1]:1")},
		{reason: "one network", one: everyone("[2001:db8::1]:1"), two: everyone("[2001:db8::2]:1")},
		{reason: "two networks", one: everyone("[2001:db8::1]:1"), two: everyone("[2001:db8:0:1::1]:1"), different: true},
	} {
		one := senderOf(requestOf(t, tc.one.principal, tc.one.address, nil))
		two := senderOf(requestOf(t, tc.two.principal, tc.two.address, nil))
		if (one != two) != tc.different {
			t.Errorf("%s: got the senders %+v and %+v, want different ones: %t", tc.reason, one, two, tc.different)
		}
	}
}
