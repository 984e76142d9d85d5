package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// workloadState is a row of workloads, before and after the transaction.
type workloadState struct {
	instanceKey
	cluster       string // empty for none
	reported      string
	statusVersion int64
	since         int64
	reason        string
	causeSince    int64
	treeVersion   int64
	treeWrites    int64      // the transactions that wrote a part of the tree
	tree          treeCounts // of the applied tree; of the stored one only filtered
	changedAt     int64
}

// instanceTable is a v0 table of workloads, and the column of Events that refers to it.
type instanceTable struct{ kind, table, eventColumn string }

// instanceTables are in lock order.
var instanceTables = []instanceTable{
	{threeport.TypeWorkloadInstance, "workload_instances", "workloadinstanceid"},
	{threeport.TypeHelmWorkloadInstance, "helm_workload_instances", "helmworkloadinstanceid"},
}

// eventColumn is the column of Events that refers to workloads of this type.
func eventColumn(kind string) string {
	i := slices.IndexFunc(instanceTables, func(of instanceTable) bool { return of.kind == kind })
	return instanceTables[i].eventColumn
}

// loadWorkloads reads the workloads of the items. It rejects items whose workload does not exist, belongs to another
// cluster, or may not be claimed. Workloads without a cluster are locked for claimWorkloads.
func (a *applyTx) loadWorkloads(ctx context.Context) error {
	asked := make(map[instanceKey]bool)
	changes := false
	for _, one := range a.items {
		asked[one.instance] = true
		changes = changes || one.Status != nil || one.Tree != nil
	}
	if err := a.readWorkloads(ctx, asked, changes); err != nil {
		return err
	}
	if !changes && a.agent.policy == ClaimsAllowed && a.anyUnclaimed() {
		if err := a.readWorkloads(ctx, asked, true); err != nil {
			return err
		}
	}
	for _, one := range a.items {
		switch w, known := a.workloads[one.instance]; {
		case !known:
			one.reject(threeport.ProblemNotFound, "instance: there is no workload of this type and ID")
		case w.cluster == "" && a.agent.policy == ClaimsRefused, w.cluster != "" && w.cluster != a.agent.ClusterUID:
			one.reject(threeport.ProblemForbidden, NotAssigned(one.Instance, w.cluster, a.agent.ClusterUID))
		default:
			*one.result = threeport.ReportAnswer{} // clear the answer of an earlier attempt
		}
	}
	return nil
}

// readWorkloads reads the existing workloads, and locks them if the transaction will change them.
func (a *applyTx) readWorkloads(ctx context.Context, asked map[instanceKey]bool, lock bool) error {
	a.workloads = make(map[instanceKey]*workloadState, len(asked))
	for _, of := range instanceTables {
		var ids []int64
		for instance := range asked {
			if instance.kind == of.kind {
				ids = append(ids, instance.id)
			}
		}
		slices.Sort(ids)
		text := "SELECT w.id, w.clusteruid, w.said, w.saidversion, w.since, w.reason, w.causesince, w.treeversion, w.treewrites, w.filtered, w.changedat FROM x CROSS JOIN " +
			of.table + " i CROSS JOIN workloads w WHERE i.id = x.id AND i.deletedat IS NULL AND w.type = '" + of.kind +
			"' AND w.id = x.id AND w.deletedat IS NULL ORDER BY x.id"
		if lock {
			text += a.store.dialect.locking("i, w")
		}
		err := a.exec(ctx, bulk{text, []column{integers("id", ids, identity)}, len(ids), nil}, func(scan scanner) error {
			w := workloadState{instanceKey: instanceKey{kind: of.kind}}
			var cluster sql.NullString
			err := scan(&w.id, &cluster, &w.reported, &w.statusVersion, &w.since, &w.reason, &w.causeSince, &w.treeVersion, &w.treeWrites, &w.tree.filtered, &w.changedAt)
			if err != nil {
				return err
			}
			w.cluster = cluster.String
			a.workloads[w.instanceKey] = &w
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func identity[V any](v V) V { return v }

func (a *applyTx) anyUnclaimed() bool {
	for _, w := range a.workloads {
		if w.cluster == "" {
			return true
		}
	}
	return false
}

// claimWorkloads assigns workloads without a cluster to this one, if the policy allows it. It runs after all steps that may
// reject an item: an invalid report must not take a workload from its cluster.
func (a *applyTx) claimWorkloads(ctx context.Context) error {
	var claimed []*workloadState
	for _, one := range a.items {
		w := a.workloads[one.instance]
		if !one.isRejected() && w.cluster == "" {
			w.cluster, w.changedAt = a.agent.ClusterUID, a.nextChangedAt(w.changedAt)
			claimed = append(claimed, w)
			a.claimed = append(a.claimed, one.Instance)
		}
	}
	sortWorkloads(claimed)
	return a.exec(ctx, bulk{
		"UPDATE workloads SET clusteruid = ?, changedat = x.changedat FROM x WHERE workloads.type = x.type AND workloads.id = x.id",
		append(workloadKeyColumns(claimed), changedAtColumn(claimed)),
		len(claimed),
		[]any{a.agent.ClusterUID},
	}, nil)
}

func sortWorkloads(all []*workloadState) {
	slices.SortFunc(all, func(a, b *workloadState) int { return compareInstances(a.instanceKey, b.instanceKey) })
}

// workloadKeyColumns are the primary key of workloads.
func workloadKeyColumns(of []*workloadState) []column {
	return []column{
		texts("type", of, func(w *workloadState) string { return w.kind }),
		integers("id", of, func(w *workloadState) int64 { return w.id }),
	}
}

func changedAtColumn(of []*workloadState) column {
	return integers("changedat", of, func(w *workloadState) int64 { return w.changedAt })
}
