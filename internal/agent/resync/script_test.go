package resync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// script is a control plane with scripted answers.
type script struct {
	events   func(filter threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error)
	resource func(id int64) (threeport.WorkloadResourceInstance, error)
	instance func(id int64) (threeport.WorkloadInstance, error)

	mu    sync.Mutex
	lists int
}

func newScript() *script {
	return &script{
		events: func(threeport.EventFilter, int, int) ([]threeport.WorkloadEvent, int64, error) {
			return nil, 0, nil
		},
		resource: func(id int64) (threeport.WorkloadResourceInstance, error) {
			return threeport.WorkloadResourceInstance{ID: &id}, nil
		},
		instance: func(id int64) (threeport.WorkloadInstance, error) {
			return threeport.WorkloadInstance{ID: &id}, nil
		},
	}
}

func (s *script) ListWorkloadEvents(
	_ context.Context, filter threeport.EventFilter, page, size int,
) ([]threeport.WorkloadEvent, int64, error) {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	return s.events(filter, page, size)
}

func (s *script) GetWorkloadResourceInstance(_ context.Context, id int64) (threeport.WorkloadResourceInstance, error) {
	return s.resource(id)
}

func (s *script) GetWorkloadInstance(_ context.Context, id int64) (threeport.WorkloadInstance, error) {
	return s.instance(id)
}

func (s *script) GetHelmWorkloadInstance(_ context.Context, id int64) (threeport.HelmWorkloadInstance, error) {
	row, err := s.instance(id)
	return threeport.HelmWorkloadInstance{ID: row.ID, Status: row.Status}, err
}

func (*script) EventsKeptAfter(context.Context, threeport.Instance) (time.Time, error) {
	return time.Time{}, nil
}

// declarations are ready unless they have an error.
type declarations struct{ err error }

func (d declarations) Ready(context.Context) error { return d.err }

// untracked are declarations that never become ready.
var untracked = declarations{errors.New("a workload is not tracked yet")}

// held is an Outbox that has states only.
type held struct {
	mu      sync.Mutex
	adopted []target.Instance
	known   []outbox.Known // of all of them
	states  map[observe.Key]outbox.KeyState
	offered []observe.Report
	resent  []observe.Report
	refuses bool // Resend
}

func newHeld() *held { return &held{states: map[observe.Key]outbox.KeyState{}} }

func (h *held) Seed(instance target.Instance, known []outbox.Known, _ []observe.Operation, _ []observe.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.adopted, h.known = append(h.adopted, instance), append(h.known, known...)
}

func (h *held) State(r observe.Report) outbox.KeyState {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.states[r.Key()]
	s.Current = s.Phase == outbox.Settled && s.Version == r.Version()
	return s
}

func (h *held) Resend(r observe.Report, _ outbox.Receipt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses {
		return false
	}
	h.resent = append(h.resent, r)
	return true
}

func (h *held) Offer(r observe.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offered = append(h.offered, r)
}

func (h *held) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.adopted)
}

func (h *held) sent() []observe.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.resent)
}

func (h *held) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuses = true
}
