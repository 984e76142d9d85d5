package main

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// content is the content of the control-plane API.
type content struct {
	oracle.History
	statuses  map[string]string // of the instances, by the workload's name
	workloads map[threeport.Instance]threeport.Workload
}

func readContent(ctx context.Context, api upstream.API, workloads []deployed) (content, error) {
	h := content{statuses: map[string]string{}}
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

// rowOf returns the row of one workload in the web UI.
func (h content) rowOf(w deployed) threeport.Workload {
	return h.workloads[threeport.Instance{Type: string(w.typ), ID: threeport.ID(w.InstanceID)}]
}

// eventsOf returns the rows of one workload's Events.
func (h content) eventsOf(w deployed) []threeport.WorkloadEvent {
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

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
