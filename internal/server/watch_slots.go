package server

import (
	"errors"
	"fmt"
	"sync"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// The bounds of the streams of one replica. Each takes 45 KiB, most of it the stacks of two goroutines, and with HTTP/1.1 a
// connection: 180 MiB in all. A role has at most nine tenths of them, so that viewers cannot keep administrators out.
const (
	maxWatches        = 4_000
	maxWatchesPerRole = maxWatches / 10 * 9
)

// watchSlots counts the open streams and bounds them. It is safe for concurrent use.
type watchSlots struct {
	perPrincipal int

	mu          sync.Mutex
	open        int
	byRole      map[auth.Role]int
	byPrincipal map[string]int // by [auth.Principal.LimitKey]
}

func newWatchSlots(perPrincipal int) *watchSlots {
	return &watchSlots{perPrincipal: perPrincipal, byRole: map[auth.Role]int{}, byPrincipal: map[string]int{}}
}

// acquire takes a slot for a stream of a principal, which the caller releases. The error says what to do. Without
// authentication there is no principal, and so no bound for one.
func (s *watchSlots) acquire(p auth.Principal) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := p.LimitKey()
	switch {
	case p.Credential != auth.CredentialNone && s.byPrincipal[key] >= s.perPrincipal:
		return nil, fmt.Errorf("you have %d open watches, the maximum for one principal: close some, such as pages of the web UI, "+
			"or have an administrator raise --max-watches", s.perPrincipal)
	case s.byRole[p.Role] >= maxWatchesPerRole, s.open >= maxWatches:
		return nil, errors.New("all watches for your role are in use: try again, or add replicas of the API")
	}
	s.open++
	s.byRole[p.Role]++
	s.byPrincipal[key]++
	return sync.OnceFunc(func() { s.release(p.Role, key) }), nil
}

func (s *watchSlots) release(role auth.Role, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.byRole[role]--
	if s.byPrincipal[key]--; s.byPrincipal[key] == 0 {
		delete(s.byPrincipal, key)
	}
}
