package server

import (
	"net/http"
	"net/netip"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// sender is the sender of a request, by which its memory is limited.
type sender struct {
	name string
	role auth.Role // empty without authentication, because all senders would have one role
}

// senderOf returns the sender of a request. It is the cluster of an agent, or the viewer. Else it is the principal at its address, because
// several agents of v0 and upstream controllers may share a certificate or have none. A token and a session of one principal are one
// sender. An IPv6 network of 64 bits counts as one address, because its owner controls every address in it.
func senderOf(req *http.Request) sender {
	principal := auth.PrincipalFrom(req.Context())
	role := principal.Role
	if principal.Credential == auth.CredentialNone {
		role = ""
	}
	if principal.ClusterUID != "" {
		return sender{"cluster:" + principal.ClusterUID, role}
	}
	if role == auth.RoleViewer {
		return sender{principal.LimitKey(), role}
	}
	return sender{principal.LimitKey() + " at " + networkOf(req.RemoteAddr), role}
}

// networkOf is the network of an address with a port that counts as one address for limits.
func networkOf(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return address // only the connection of a test has another form
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(addr, bits).Masked().String()
}
