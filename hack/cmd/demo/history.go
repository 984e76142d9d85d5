package main

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// history is the content of the control-plane API.
type history struct {
	oracle.History
	statuses map[string]string // of the instances, by the workload's name
	board    map[threeport.Instance]threeport.Workload
}

func readHistory(ctx context.Context, api upstream.API, workloads []deployed) (history, error) {
	h := history{statuses: map[string]string{}}
	for _, w := range workloads {
		objects := upstream.WorkloadInstances
		if w.helm() {
			objects = upstream.HelmWorkloadInstances
		}
		status, err := api.Status(ctx, objects, w.InstanceID)
		if err != nil {
			return h, err
		}
		h.statuses[w.name] = status
	}
	var err error
	h.History, err = oracle.Read(ctx, api)
	return h, err
}

// rowOf returns the row of one workload on the page.
func (h history) rowOf(w deployed) threeport.Workload {
	return h.board[threeport.Instance{Type: string(w.typ), ID: threeport.ID(w.InstanceID)}]
}

// eventsOf returns the rows of one workload's Events.
func (h history) eventsOf(w deployed) []threeport.WorkloadEvent {
	var out []threeport.WorkloadEvent
	for _, row := range h.Events {
		id := value(row.WorkloadInstanceID)
		if w.helm() {
			id = value(row.HelmWorkloadInstanceID)
		}
		if id == w.InstanceID {
			out = append(out, row)
		}
	}
	return out
}

// value returns what p points to, or zero.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
