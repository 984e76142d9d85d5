package server

import (
	"net/http"
	"net/netip"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// senderOf names the sender of a request, by which its memory is limited. It is the cluster of an agent, or else the principal
// at its address, because several agents may share a certificate or have none. An IPv6 network of 64 bits counts as one
// address, because its owner controls every address in it.
func senderOf(req *http.Request) string {
	principal := auth.PrincipalFrom(req.Context())
	if principal.ClusterUID != "" {
		return "cluster:" + principal.ClusterUID
	}
	from := req.RemoteAddr
	if at, err := netip.ParseAddrPort(from); err == nil {
		addr, bits := at.Addr().Unmap().WithZone(""), 32
		if addr.Is6() {
			bits = 64
		}
		from = netip.PrefixFrom(addr, bits).Masked().String()
	}
	return principal.String() + " at " + from
}
