package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// History is the content of the control plane.
type History struct {
	Events    []threeport.WorkloadEvent
	Resources map[int64]threeport.WorkloadResourceInstance // by ID
}

// Read reads all rows of the control plane, so that checks find rows of wrong instances too.
func Read(ctx context.Context, api upstream.API) (History, error) {
	h := History{Resources: map[int64]threeport.WorkloadResourceInstance{}}
	rows, err := api.Resources(ctx, nil)
	if err != nil {
		return h, err
	}
	for _, row := range rows {
		h.Resources[deref(row.ID)] = row
	}
	h.Events, err = api.Events(ctx, nil)
	return h, err
}

// For returns a copy with only the Events of some workloads, and with all resources.
func (h History) For(workloads []Expected) History {
	h.Events = slices.DeleteFunc(slices.Clone(h.Events), func(row threeport.WorkloadEvent) bool {
		return !slices.ContainsFunc(workloads, func(w Expected) bool {
			workload, helm := w.ids()
			return deref(row.WorkloadInstanceID) == workload && deref(row.HelmWorkloadInstanceID) == helm
		})
	})
	return h
}

// DifferencesError has the differences between the cluster and the control plane.
type DifferencesError []string

func (e DifferencesError) Error() string {
	const shown = 10
	text := strings.Join(e[:min(len(e), shown)], "\n  ")
	return fmt.Sprintf("%d differences between the cluster and the control plane, such as:\n  %s", len(e), text)
}

// Await repeats the check until there is no difference or the context ends. Then it returns the last differences as a
// DifferencesError. The control plane must not have other workloads.
func (o *Oracle) Await(ctx context.Context, api upstream.API, workloads []Expected) error {
	return o.await(ctx, workloads, func() (History, error) { return Read(ctx, api) })
}

// AwaitOnly is Await for a control plane with other workloads.
func (o *Oracle) AwaitOnly(ctx context.Context, api upstream.API, workloads []Expected) error {
	return o.await(ctx, workloads, func() (History, error) {
		h, err := Read(ctx, api)
		return h.For(workloads), err
	})
}

func (o *Oracle) await(ctx context.Context, workloads []Expected, read func() (History, error)) error {
	var differences DifferencesError
	for {
		begin := time.Now()
		h, err := read()
		switch {
		case err == nil:
			differences = o.Check(h, workloads)
		case ctx.Err() == nil || differences == nil: // otherwise the last differences say more
			differences = DifferencesError{"read the control plane: " + err.Error()}
		}
		if len(differences) == 0 {
			return nil
		}
		// A slow check means a busy machine, so wait longer.
		pause := time.NewTimer(max(250*time.Millisecond, 2*time.Since(begin)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return differences
		}
	}
}

func deref[T any](p *T) T {
	var zero T
	return *cmp.Or(p, &zero)
}
