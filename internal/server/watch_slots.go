package server

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/time/rate"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// The bounds of the streams of one replica. Each takes 45 KiB, most of it the stacks of two goroutines, and with HTTP/1.1 a
// connection: 180 MiB in all. A role has at most nine tenths of them, so that viewers cannot keep administrators out.
const (
	maxWatches        = 4_000
	maxWatchesPerRole = maxWatches / 10 * 9
)

// A principal has a budget of output for its streams together: watchRate bytes per second, and watchBurst at once. A write takes its
// bytes and writeCost, which is about its work without any. So the streams of one principal take a small part of a processor.
const (
	watchRate  = 4 << 20
	watchBurst = 8 << 20
	writeCost  = 4 << 10
)

// watchSlots counts the open streams and bounds them. It is safe for concurrent use.
type watchSlots struct {
	perPrincipal int

	mu          sync.Mutex
	open        int
	byRole      map[auth.Role]int
	byPrincipal map[string]*principalWatches // by [auth.Principal.LimitKey]
}

// principalWatches are the open streams of a principal, and their budget of output.
type principalWatches struct {
	open   int
	budget *rate.Limiter
}

// watchSlot is the place of a stream, with the budget of its principal.
type watchSlot struct {
	budget  *rate.Limiter
	release func()
}

func newWatchSlots(perPrincipal int) *watchSlots {
	return &watchSlots{perPrincipal: perPrincipal, byRole: map[auth.Role]int{}, byPrincipal: map[string]*principalWatches{}}
}

// acquire takes a slot for a stream of a principal, which the caller releases. The error says what to do. Without
// authentication there is no principal, and so neither a bound nor a budget for one.
func (s *watchSlots) acquire(p auth.Principal) (*watchSlot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := p.LimitKey()
	watches, known := s.byPrincipal[key]
	if !known {
		watches = &principalWatches{budget: newWatchBudget(p)}
	}
	switch {
	case p.Credential != auth.CredentialNone && watches.open >= s.perPrincipal:
		return nil, fmt.Errorf("you have %d open watches, the maximum for one principal: close some, such as pages of the web UI, "+
			"or have an administrator raise --max-watches", s.perPrincipal)
	case s.byRole[p.Role] >= maxWatchesPerRole, s.open >= maxWatches:
		return nil, errors.New("all watches for your role are in use: try again, or add replicas of the API")
	}
	s.open++
	s.byRole[p.Role]++
	watches.open++
	s.byPrincipal[key] = watches
	return &watchSlot{watches.budget, sync.OnceFunc(func() { s.release(p.Role, key) })}, nil
}

// newWatchBudget is the budget of a principal without streams.
func newWatchBudget(p auth.Principal) *rate.Limiter {
	if p.Credential == auth.CredentialNone {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(watchRate, watchBurst)
}

func (s *watchSlots) release(role auth.Role, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.byRole[role]--
	watches := s.byPrincipal[key]
	if watches.open--; watches.open == 0 {
		delete(s.byPrincipal, key)
	}
}
