package store

import (
	"maps"
	"sync"
)

// grownWorkloads counts the Events that were added to workloads since they were last looked at. It is a hint where to
// look first, kept in memory: what it does not know of, a full [Store.Prune] finds. It is safe for concurrent use; the
// zero value is empty.
type grownWorkloads struct {
	mu     sync.Mutex
	events map[instanceKey]int
}

// grownBy counts a row that v0 made, if it is an Event, for the workloads that it names. Under StrictV0 nobody takes what
// is counted.
func (s *Store) grownBy(r *Resource, values []any) map[instanceKey]int {
	if r.Object != "WorkloadEvent" || s.config.StrictV0 {
		return nil
	}
	grown := make(map[instanceKey]int)
	for _, of := range instanceTables {
		for i, f := range r.Fields {
			if id, named := values[i].(int64); named && f.references == of.table {
				grown[instanceKey{of.kind, id}]++
			}
		}
	}
	return grown
}

func (g *grownWorkloads) add(more map[instanceKey]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.events == nil {
		g.events = make(map[instanceKey]int)
	}
	for instance, n := range more {
		g.events[instance] += n
	}
}

// take forgets, and returns, the workloads that so many Events were added to.
func (g *grownWorkloads) take(least int) []instanceKey {
	g.mu.Lock()
	defer g.mu.Unlock()
	var taken []instanceKey
	maps.DeleteFunc(g.events, func(instance instanceKey, n int) bool {
		if n >= least {
			taken = append(taken, instance)
		}
		return n >= least
	})
	return taken
}
