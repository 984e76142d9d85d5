package informers

import (
	"maps"
	"slices"
	"sync"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// offer is an operation of an incarnation of an object that was offered to the sink because of a claim.
type offer struct {
	claim  target.Attribution
	object target.Identity
}

func (o offer) key() observe.Key {
	return observe.Operation{Attribution: o.claim, Object: o.object}.Key()
}

// place is where on the board a claim's objects are judged.
type place struct {
	workload string
	resource target.Ref
}

func (o offer) standing() place { return place{o.claim.Workload, o.claim.Resource.Ref} }

// offers remembers what was offered of each name, to withdraw what nobody claims any more.
type offers struct {
	mu sync.Mutex
	of map[target.Ref][]offer
}

func newOffers() *offers { return &offers{of: map[target.Ref][]offer{}} }

// add reports whether it is the first of its kind.
func (s *offers) add(o offer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.of[o.object.Ref], o) {
		return false
	}
	s.of[o.object.Ref] = append(s.of[o.object.Ref], o)
	return true
}

func (s *offers) remove(o offer) { s.split(o.object.Ref, func(other offer) bool { return other != o }) }

// names returns all names that something was offered of.
func (s *offers) names() []target.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.of))
}

// split forgets what was offered of a name except what is to be kept, and returns both.
func (s *offers) split(ref target.Ref, keep func(offer) bool) (kept, dropped []offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.of[ref] {
		if keep(o) {
			kept = append(kept, o)
		} else {
			dropped = append(dropped, o)
		}
	}
	if len(kept) == 0 {
		delete(s.of, ref)
	} else {
		s.of[ref] = kept
	}
	return kept, dropped
}
