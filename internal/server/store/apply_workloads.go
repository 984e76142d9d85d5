package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// workloadState is the board's row of an instance, as it is now and is to be.
type workloadState struct {
	instanceKey
	cluster     string // empty if no cluster has it
	said        string
	saidVersion int64
	since       int64
	treeVersion int64
	changedAt   int64
}

// instanceTable is a table of v0 with workloads of a type, and the column of Events that refers to it.
type instanceTable struct{ kind, table, eventColumn string }

// instanceTables are both of them, in the order in which rows are locked.
var instanceTables = []instanceTable{
	{threeport.TypeWorkloadInstance, "workload_instances", "workloadinstanceid"},
	{threeport.TypeHelmWorkloadInstance, "helm_workload_instances", "helmworkloadinstanceid"},
}

// eventColumn is the column by which an Event refers to a workload of a type.
func eventColumn(kind string) string {
	i := slices.IndexFunc(instanceTables, func(of instanceTable) bool { return of.kind == kind })
	return instanceTables[i].eventColumn
}

// findWorkloads reads the workloads that the items are about, and rejects the items whose workload does not exist or is
// another cluster's. Those that have no cluster are locked: see claim.
func (a *application) findWorkloads(ctx context.Context) error {
	asked := make(map[instanceKey]bool)
	changes := false
	for _, one := range a.items {
		asked[one.instance] = true
		changes = changes || one.Status != nil || one.Tree != nil
	}
	if err := a.readWorkloads(ctx, asked, changes); err != nil {
		return err
	}
	if !changes && a.anyUnclaimed() {
		if err := a.readWorkloads(ctx, asked, true); err != nil {
			return err
		}
	}
	for _, one := range a.items {
		switch w, known := a.workloads[one.instance]; {
		case !known:
			one.reject(threeport.ProblemNotFound, "instance: there is no workload of this type and ID")
		case w.cluster != "" && w.cluster != a.agent.ClusterUID:
			one.reject(threeport.ProblemForbidden, "instance: the workload is another cluster's")
		default:
			*one.result = threeport.ReportAnswer{} // of an earlier try
		}
	}
	return nil
}

// readWorkloads reads the workloads that exist, and locks them if they are to be changed.
func (a *application) readWorkloads(ctx context.Context, asked map[instanceKey]bool, lock bool) error {
	a.workloads = make(map[instanceKey]*workloadState, len(asked))
	for _, of := range instanceTables {
		var ids []int64
		for instance := range asked {
			if instance.kind == of.kind {
				ids = append(ids, instance.id)
			}
		}
		slices.Sort(ids)
		text := "SELECT w.id, w.clusteruid, w.said, w.saidversion, w.since, w.treeversion, w.changedat FROM x CROSS JOIN " +
			of.table + " i CROSS JOIN workloads w WHERE i.id = x.id AND i.deletedat IS NULL AND w.type = '" + of.kind +
			"' AND w.id = x.id AND w.deletedat IS NULL ORDER BY x.id"
		if lock {
			text += a.store.dialect.locking("i, w")
		}
		err := a.exec(ctx, bulk{text, []column{integers("id", ids, same)}, len(ids), nil}, func(scan scanner) error {
			w := workloadState{instanceKey: instanceKey{kind: of.kind}}
			var cluster sql.NullString
			err := scan(&w.id, &cluster, &w.said, &w.saidVersion, &w.since, &w.treeVersion, &w.changedAt)
			w.cluster = cluster.String
			a.workloads[w.instanceKey] = &w
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func same[V any](v V) V { return v }

// locking is what locks the rows of a SELECT until the transaction ends. SQLite has one transaction that writes, and no
// need of it.
func (d dialect) locking(tables string) string {
	if d == sqliteDialect {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + tables // which lets others add rows that refer to these
}

func (a *application) anyUnclaimed() bool {
	for _, w := range a.workloads {
		if w.cluster == "" {
			return true
		}
	}
	return false
}

// claim gives the workloads that have no cluster to this one, if there is a report of them that is not rejected: one that
// is wrong must not take a workload from the cluster that it is of. It comes after all that may reject a report.
func (a *application) claim(ctx context.Context) error {
	var claimed []*workloadState
	for _, one := range a.items {
		w := a.workloads[one.instance]
		if !one.rejected() && w.cluster == "" {
			w.cluster, w.changedAt = a.agent.ClusterUID, a.after(w.changedAt)
			claimed = append(claimed, w)
		}
	}
	sortWorkloads(claimed)
	return a.exec(ctx, bulk{
		"UPDATE workloads SET clusteruid = ?, changedat = x.changedat FROM x WHERE workloads.type = x.type AND workloads.id = x.id",
		append(workloadColumns(claimed), integers("changedat", claimed, func(w *workloadState) int64 { return w.changedAt })),
		len(claimed),
		[]any{a.agent.ClusterUID},
	}, nil)
}

func sortWorkloads(all []*workloadState) {
	slices.SortFunc(all, func(a, b *workloadState) int { return compareInstances(a.instanceKey, b.instanceKey) })
}

// workloadColumns are the key of workloads.
func workloadColumns(of []*workloadState) []column {
	return []column{
		texts("type", of, func(w *workloadState) string { return w.kind }),
		integers("id", of, func(w *workloadState) int64 { return w.id }),
	}
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
func (a *application) findResources(ctx context.Context) error {
	named := sortedBy(a.items, func(i *item) (int64, bool) {
		_, id := i.resource()
		return id, id != 0
	}, cmp.Compare)
	ids := a.treeResources()
	for _, one := range named {
		_, id := one.resource()
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	a.resources = make(map[int64]*resourceRow, len(ids))
	err := a.exec(ctx, bulk{
		"SELECT r.id, r.workloadinstanceid, r.deletedat IS NOT NULL, COALESCE(r.objectuid, ''), COALESCE(r.objectversion, -1), " +
			"COALESCE(r.objectdeleted, FALSE) FROM x CROSS JOIN workload_resource_instances r WHERE r.id = x.id",
		[]column{integers("id", ids, same)},
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
		field, id := one.resource()
		switch r, known := a.resources[id]; {
		case !known || r.deleted && one.Operation != nil: // Events may come after the end of what they are about
			one.reject(threeport.ProblemNotFound, field+": there is no workload resource instance of this ID")
		case !r.isOf(one.instance):
			one.reject(threeport.ProblemInvalid, field+": accepted is a workload resource instance of the report's workload")
		}
	}
	return nil
}

// treeResources are the rows that the objects of trees name.
func (a *application) treeResources() (ids []int64) {
	for _, one := range a.items {
		if one.Tree == nil || one.rejected() {
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
