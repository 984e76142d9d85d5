package reporter

import (
	"maps"
	"slices"
	"sync"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// offeredOperation is an operation of an object that was offered because of an attribution.
type offeredOperation struct {
	attribution target.Attribution
	object      target.Identity
}

func (o offeredOperation) key() observe.Key {
	return observe.Operation{Attribution: o.attribution, Object: o.object}.Key()
}

// sameResource reports whether two operations count for the health of the same resource.
func (o offeredOperation) sameResource(other offeredOperation) bool {
	return o.attribution.Workload == other.attribution.Workload && o.attribution.Resource.Ref == other.attribution.Resource.Ref
}

// offeredOperations records the offered operations of each name, so that they can be withdrawn.
type offeredOperations struct {
	mu    sync.Mutex
	named map[target.Ref][]offeredOperation
}

func newOfferedOperations() *offeredOperations {
	return &offeredOperations{named: map[target.Ref][]offeredOperation{}}
}

// add reports whether the operation was not recorded before.
func (s *offeredOperations) add(o offeredOperation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.named[o.object.Ref], o) {
		return false
	}
	s.named[o.object.Ref] = append(s.named[o.object.Ref], o)
	return true
}

func (s *offeredOperations) remove(o offeredOperation) {
	s.split(o.object.Ref, func(other offeredOperation) bool { return other != o })
}

// names returns all names with an offered operation.
func (s *offeredOperations) names() []target.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.named))
}

// split removes the operations of a name, except those to keep, and returns both.
func (s *offeredOperations) split(ref target.Ref, keep func(offeredOperation) bool) (kept, dropped []offeredOperation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.named[ref] {
		if keep(o) {
			kept = append(kept, o)
		} else {
			dropped = append(dropped, o)
		}
	}
	if len(kept) == 0 {
		delete(s.named, ref)
	} else {
		s.named[ref] = kept
	}
	return kept, dropped
}

func (s *offeredOperations) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.named)
}
