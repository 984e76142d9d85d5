package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// belongsTo reports whether the resource, which may be deleted, belongs to the workload. It is false for nil, a row
// that does not exist.
func (r *resourceRow) belongsTo(workload instanceKey) bool {
	return r != nil && workload == instanceKey{threeport.TypeWorkloadInstance, r.instance}
}

// resourceRow is a row of workload_resource_instances, before and after the transaction.
type resourceRow struct {
	id, instance  int64
	deleted       bool
	objectUID     string
	objectVersion int64 // -1 for none
	objectDeleted bool
}

// loadResources reads the resource rows that the items name. It rejects items whose row does not exist or belongs to
// another workload. It does not reject trees: see withoutForeignResources.
func (a *applyTx) loadResources(ctx context.Context) error {
	named := sortedItems(a.items, func(i *item) (int64, bool) {
		_, id := i.resourceInstance()
		return id, id != 0
	}, cmp.Compare)
	ids := a.treeResourceIDs()
	for _, one := range named {
		_, id := one.resourceInstance()
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	a.resources = make(map[int64]*resourceRow, len(ids))
	err := a.exec(ctx, bulk{
		"SELECT r.id, r.workloadinstanceid, r.deletedat IS NOT NULL, COALESCE(r.objectuid, ''), COALESCE(r.objectversion, -1), " +
			"COALESCE(r.objectdeleted, FALSE) FROM x CROSS JOIN workload_resource_instances r WHERE r.id = x.id",
		[]column{integers("id", ids, identity)},
		len(ids), nil,
	}, func(scan scanner) error {
		var r resourceRow
		if err := scan(&r.id, &r.instance, &r.deleted, &r.objectUID, &r.objectVersion, &r.objectDeleted); err != nil {
			return err
		}
		a.resources[r.id] = &r
		return nil
	})
	if err != nil {
		return err
	}
	for _, one := range named {
		field, id := one.resourceInstance()
		switch r, known := a.resources[id]; {
		case !known || r.deleted && one.Operation != nil: // Events may arrive after the deletion of their object
			one.reject(threeport.ProblemNotFound, fmt.Sprintf("%s: there is no WorkloadResourceInstance %d", field, id))
		case !r.belongsTo(one.instance):
			one.reject(threeport.ProblemInvalid, fmt.Sprintf("%s: WorkloadResourceInstance %d belongs to another workload", field, id))
		}
	}
	return nil
}

// treeResourceIDs are the resource rows that the objects of trees name.
func (a *applyTx) treeResourceIDs() (ids []int64) {
	for _, one := range a.items {
		if one.Tree == nil || one.isRejected() {
			continue
		}
		for i := range one.Tree.Objects {
			if id := int64(one.Tree.Objects[i].ResourceInstanceID); id != 0 {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
