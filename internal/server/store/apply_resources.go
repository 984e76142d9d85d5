package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// isOf tells whether it is a resource of a workload, deleted or not. There may be no such row: it is nil then.
func (r *resourceRow) belongsTo(workload instanceKey) bool {
	return r != nil && workload == instanceKey{threeport.TypeWorkloadInstance, r.instance}
}

// resourceRow is a resource's row of v0, as it is now and is to be.
type resourceRow struct {
	id, instance  int64
	deleted       bool
	objectUID     string
	objectVersion int64 // -1 if it has none
	objectDeleted bool
}

// findResources reads the rows of resources that items name, and rejects the items whose row does not exist, or is not
// their workload's. A tree is not rejected for one of its objects: see ownResources.
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
		err := scan(&r.id, &r.instance, &r.deleted, &r.objectUID, &r.objectVersion, &r.objectDeleted)
		a.resources[r.id] = &r
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range named {
		field, id := one.resourceInstance()
		switch r, known := a.resources[id]; {
		case !known || r.deleted && one.Operation != nil: // Events may come after the end of what they are about
			one.reject(threeport.ProblemNotFound, field+": there is no workload resource instance of this ID")
		case !r.belongsTo(one.instance):
			one.reject(threeport.ProblemInvalid, field+": must be a workload resource instance of the report's workload")
		}
	}
	return nil
}

// treeResources are the rows that the objects of trees name.
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
