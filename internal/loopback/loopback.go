// Package loopback decides which hosts are this machine. Credentials may be sent to them without TLS.
package loopback

import "net/netip"

// IsHost reports whether a host is localhost or an address of loopback, such as 127.0.0.1 or ::1. It resolves no names.
func IsHost(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
