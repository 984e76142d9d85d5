package main

import (
	"context"

	"github.com/threeport/threeport-agent/internal/controlplane"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// history is what the control-plane API says.
type history struct {
	statuses  map[string]string // of the instances, by the workload's name
	resources map[int64]controlplane.WorkloadResourceInstance
	events    []controlplane.WorkloadEvent // of all workloads
	leaks     []string                     // where the Secret's value was found
}

// readHistory asks for all rows, so that those in a wrong place are seen too.
func readHistory(ctx context.Context, api upstream.API, workloads []deployed) (history, error) {
	h := history{statuses: map[string]string{}, resources: map[int64]controlplane.WorkloadResourceInstance{}}
	for _, w := range workloads {
		objects := upstream.WorkloadInstances
		if w.helm() {
			objects = upstream.HelmWorkloadInstances
		}
		status, err := api.Status(ctx, objects, w.instanceID)
		if err != nil {
			return h, err
		}
		h.statuses[w.name] = status
	}
	rows, err := api.Resources(ctx, nil)
	if err != nil {
		return h, err
	}
	for _, row := range rows {
		h.resources[value(row.ID)] = row
	}
	h.events, err = api.Events(ctx, nil)
	return h, err
}

// eventsOf returns the rows of one workload's Events.
func (h history) eventsOf(w deployed) []controlplane.WorkloadEvent {
	var out []controlplane.WorkloadEvent
	for _, row := range h.events {
		id := value(row.WorkloadInstanceID)
		if w.helm() {
			id = value(row.HelmWorkloadInstanceID)
		}
		if id == w.instanceID {
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
