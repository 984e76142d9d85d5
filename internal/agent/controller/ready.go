package controller

import (
	"context"
	"fmt"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// Ready returns an error until every declared workload is tracked, or its list is excluded.
func (r *Reconciler) Ready(ctx context.Context) error {
	var declared v1alpha1.ThreeportWorkloadList
	if err := r.client.List(ctx, &declared); err != nil {
		return fmt.Errorf("list ThreeportWorkloads: %w", err)
	}
	for i := range declared.Items {
		wl := &declared.Items[i]
		if _, tracked := r.targets.Workload(wl.Name); !tracked && wl.DeletionTimestamp.IsZero() && r.lists.exclusion(wl.Name) == "" {
			return fmt.Errorf("ThreeportWorkload %s is not tracked yet", wl.Name)
		}
	}
	return nil
}
