package server

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// senders hold what each of those who are sending may have. They are safe for concurrent use.
type senders[Share any] struct {
	fresh func() Share // what one may have who has nothing yet

	mu   sync.Mutex
	each map[string]*sender[Share]
}

// sender is one of them, and how many requests of it there are.
type sender[Share any] struct {
	share    Share
	requests int
}

func newSenders[Share any](fresh func() Share) *senders[Share] {
	return &senders[Share]{fresh: fresh, each: map[string]*sender[Share]{}}
}

// shareOf is what a sender may have, until it leaves: when it has given back what it took of it.
func (s *senders[Share]) shareOf(name string) (share Share, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.each[name]
	if !known {
		one = &sender[Share]{share: s.fresh()}
		s.each[name] = one
	}
	one.requests++
	return one.share, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.requests--; one.requests == 0 {
			delete(s.each, name)
		}
	}
}

// senderOf is who sends a request: the cluster of an agent, else the principal at its address, since agents may have one
// certificate, or none. All of an IPv6 network of 64 bits is one address: whoever has one of them has all.
func senderOf(req *http.Request) string {
	who := auth.PrincipalFrom(req.Context())
	if who.ClusterUID != "" {
		return "cluster:" + who.ClusterUID
	}
	from := req.RemoteAddr
	if at, err := netip.ParseAddrPort(from); err == nil {
		addr, bits := at.Addr().Unmap().WithZone(""), 32
		if addr.Is6() {
			bits = 64
		}
		from = netip.PrefixFrom(addr, bits).Masked().String()
	}
	return who.String() + " at " + from
}
