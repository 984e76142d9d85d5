package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedFor is the header to which each proxy appends the address of its client.
const forwardedFor = "X-Forwarded-For"

// validateProxies refuses a network of all addresses: every client could then choose its address.
func validateProxies(proxies []netip.Prefix) error {
	for _, p := range proxies {
		if !p.IsValid() || p.Bits() == 0 {
			return fmt.Errorf("trusted proxies %v: use the networks of the proxies only, such as 10.0.0.0/8", p)
		}
	}
	return nil
}

// withClientAddress replaces the RemoteAddr of a request that came through trusted proxies by the address of the client, for
// the limits of an address. The header of any other client is ignored.
func withClientAddress(proxies []netip.Prefix, next http.Handler) http.Handler {
	if len(proxies) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		client, err := clientOf(req, proxies)
		if err != nil {
			writeProblem(w, problem(http.StatusBadRequest, err.Error()))
			return
		}
		if client != "" {
			req = req.Clone(req.Context())
			req.RemoteAddr = client
		}
		next.ServeHTTP(w, req)
	})
}

// clientOf is the address and port 0 of a request's client; empty if the request did not come through a proxy. It reads the
// header from its end, up to the first address that is no trusted proxy: a client can write anything before that.
func clientOf(req *http.Request, proxies []netip.Prefix) (string, error) {
	peer, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil || !isTrusted(peer.Addr(), proxies) {
		return "", nil // only the connection of a test has another form
	}
	hops := strings.Split(strings.Join(req.Header.Values(forwardedFor), ","), ",")
	client := netip.Addr{}
	for _, hop := range slices.Backward(hops) {
		if hop = strings.TrimSpace(hop); hop == "" && len(hops) == 1 {
			return "", nil // such as a health check of the proxy
		}
		if client, err = parseHop(hop); err != nil {
			return "", err
		}
		if !isTrusted(client, proxies) {
			break
		}
	}
	return netip.AddrPortFrom(client, 0).String(), nil
}

// parseHop parses an address. Some proxies append a port.
func parseHop(text string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return addr, nil
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}, errors.New(forwardedFor + " is malformed: a trusted proxy must append the IP address of its client")
	}
	return at.Addr(), nil
}

func isTrusted(addr netip.Addr, proxies []netip.Prefix) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
