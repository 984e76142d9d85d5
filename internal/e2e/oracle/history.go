package oracle

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/controlplane"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// History is what the control plane holds.
type History struct {
	Events    []controlplane.WorkloadEvent
	Resources map[int64]controlplane.WorkloadResourceInstance // by ID
}

// Read returns all that the control plane holds, so that rows in a wrong place are seen too.
func Read(ctx context.Context, api upstream.API) (History, error) {
	h := History{Resources: map[int64]controlplane.WorkloadResourceInstance{}}
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

// Await checks again and again until there is no difference, or the context ends; then it returns the last
// differences.
func (o *Oracle) Await(ctx context.Context, api upstream.API, workloads []Expected) error {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		h, err := Read(ctx, api)
		differences := []string{"read the control plane: " + fmt.Sprint(err)}
		if err == nil {
			differences = o.Check(h, workloads)
		}
		if len(differences) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			const shown = 10
			text := strings.Join(differences[:min(len(differences), shown)], "\n  ")
			return fmt.Errorf("%d differences between the cluster and the control plane, such as:\n  %s", len(differences), text)
		}
	}
}

func deref[T any](p *T) T {
	var zero T
	return *cmp.Or(p, &zero)
}
