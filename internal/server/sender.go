package server

import (
	"net/http"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// sender is the sender of a request, by which its memory is limited.
type sender struct {
	name string
	role auth.Role // empty without authentication, because all senders would have one role
}

// senderOf returns the sender of a request. It is the cluster of an agent, or the viewer. Else it is the principal at its address, because
// several agents of v0 and upstream controllers may share a certificate or have none. A token and a session of one principal are one
// sender.
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
	return sender{principal.LimitKey() + " at " + auth.ClientAddress(req.RemoteAddr), role}
}
