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
	everyone := auth.Principal{Name: "everyone", Role: auth.RoleAdmin, Credential: auth.CredentialNone}
	agent := auth.Principal{Name: "a", Role: auth.RoleAgent, ClusterUID: "c", Credential: auth.CredentialToken}
	for _, tc := range []struct {
		reason    string
		who       auth.Principal
		one, two  string
		different bool
	}{
		{reason: "a cluster at two addresses", who: agent, one: "192.0.2.1:1", two: "192.0.2.2:1"},
		{reason: "two connections", who: everyone, one: "192.0.2.1:1", two: "192.0.2.1:2"},
		{reason: "two addresses", who: everyone, one: "192.0.2.1:1", two: "192.0.2.2:1", different: true},
		{reason: "one address in two notations", who: everyone, one: "192.0.2.1:1", two: "[::ffff:192.0.2.1]:1"},
		{reason: "one network", who: everyone, one: "[2001:db8::1]:1", two: "[2001:db8::2]:1"},
		{reason: "two networks", who: everyone, one: "[2001:db8::1]:1", two: "[2001:db8:0:1::1]:1", different: true},
	} {
		one, two := senderOf(requestOf(t, tc.who, tc.one, nil)), senderOf(requestOf(t, tc.who, tc.two, nil))
		if (one != two) != tc.different {
			t.Errorf("%s: the senders are %q and %q", tc.reason, one, two)
		}
	}
}
