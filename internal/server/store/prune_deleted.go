package store

import (
	"context"
	"fmt"
)

// pruneDeleted deletes rows that were marked as deleted or gone longer than TombstoneAge ago: referring rows before the
// rows that they refer to.
func (p *pruner) pruneDeleted(ctx context.Context) error {
	before := []any{p.now - p.keep.TombstoneAge.Microseconds()}
	if err := p.deleteAll(ctx, p.deletedObjects(before)...); err != nil {
		return err
	}
	if err := p.pruneWorkloads(ctx, before); err != nil {
		return err
	}
	return p.deleteAll(ctx, p.deletedV0Rows(before)...)
}

func (p *pruner) deletedObjects(before []any) []deletion {
	return []deletion{
		{"objects", "type, id, key", "objects WHERE goneat < ? ORDER BY goneat", before, &p.pruned.Objects},
		{"definitions", "clusteruid, uid", "definitions WHERE goneat < ? ORDER BY goneat", before, &p.pruned.Definitions},
		{"workload_events", "id", "workload_events WHERE deletedat < ? ORDER BY deletedat", before, &p.pruned.Events},
	}
}

// deletedV0Rows are v0 rows to which no other row refers. The resources of a deleted instance are included, since v0
// does not delete them with it.
func (p *pruner) deletedV0Rows(before []any) []deletion {
	return []deletion{
		{
			"workload_resource_instances", "id", `workload_resource_instances r WHERE r.deletedat < ?
				AND NOT EXISTS (SELECT 1 FROM workload_events e WHERE e.workloadresourceinstanceid = r.id) ORDER BY r.deletedat`,
			before, &p.pruned.Rows,
		},
		{
			"workload_resource_instances", "id", `workload_resource_instances WHERE id IN (
				SELECT r.id FROM workload_instances i JOIN workload_resource_instances r ON r.workloadinstanceid = i.id
				WHERE i.deletedat < ? AND NOT EXISTS (SELECT 1 FROM workload_events e WHERE e.workloadresourceinstanceid = r.id)) ORDER BY id`,
			before, &p.pruned.Rows,
		},
		{
			"workload_instances", "id", `workload_instances i WHERE i.deletedat < ?
				AND NOT EXISTS (SELECT 1 FROM workload_resource_instances r WHERE r.workloadinstanceid = i.id)
				AND NOT EXISTS (SELECT 1 FROM workload_events e WHERE e.workloadinstanceid = i.id) ORDER BY i.deletedat`,
			before, &p.pruned.Rows,
		},
		{
			"helm_workload_instances", "id", `helm_workload_instances i WHERE i.deletedat < ?
				AND NOT EXISTS (SELECT 1 FROM workload_events e WHERE e.helmworkloadinstanceid = i.id) ORDER BY i.deletedat`,
			before, &p.pruned.Rows,
		},
	}
}

const deletedWorkloads = "SELECT type, id FROM workloads WHERE deletedat < ? ORDER BY deletedat LIMIT ?"

// pruneWorkloads deletes the workloads that were marked as deleted before a time, with all their rows.
func (p *pruner) pruneWorkloads(ctx context.Context, before []any) error {
	for {
		deleted, err := collect(ctx, p.store.read, deletedWorkloads,
			append(before[:1:1], maxRowsPerTx), scanInstanceKey)
		if err != nil {
			return fmt.Errorf("list deleted workloads: %w", err)
		}
		for _, instance := range deleted {
			if err := p.deleteAll(ctx, p.rowsOfWorkload(instance)...); err != nil {
				return err
			}
		}
		if len(deleted) < maxRowsPerTx {
			return nil
		}
	}
}

// rowsOfWorkload are all rows of a workload, each in the order of an index: there may be millions. Its own row comes last, so that an
// interrupted deletion is found again.
func (p *pruner) rowsOfWorkload(instance instanceKey) []deletion {
	key := []any{instance.kind, instance.id}
	return []deletion{
		{"workload_events", "id", "workload_events WHERE " + eventColumn(instance.kind) + " = ? ORDER BY timestamp, id", key[1:], &p.pruned.Events},
		{"objects", "type, id, key", "objects WHERE type = ? AND id = ? ORDER BY key", key, &p.pruned.Objects},
		{"definitions", "clusteruid, uid", "definitions WHERE type = ? AND id = ? ORDER BY clusteruid, uid", key, &p.pruned.Definitions},
		{"workloads", "type, id", "workloads WHERE type = ? AND id = ? AND deletedat IS NOT NULL", key, &p.pruned.Workloads},
	}
}
