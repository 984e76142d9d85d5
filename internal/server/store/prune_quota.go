package store

import (
	"context"
	"errors"
	"fmt"
)

// pruneLargeClusters deletes definitions of unlisted objects of the clusters that use more than half of their quota, and
// corrects their counters. It reads all definitions and objects of these clusters, without blocking writers.
func (p *pruner) pruneLargeClusters(ctx context.Context) error {
	uids, err := collect(ctx, p.store.read, "SELECT uid FROM clusters WHERE storedbytes > ? ORDER BY uid",
		[]any{p.store.config.ClusterBytes / 2}, scanText)
	if err != nil {
		return fmt.Errorf("list large clusters: %w", err)
	}
	var failed []error
	for _, uid := range uids { // one that takes too long does not keep the others from it
		failed = append(failed, p.pruneUnlistedDefinitions(ctx, uid), p.correctStoredBytes(ctx, uid))
	}
	return errors.Join(failed...)
}

func scanText(scan scanner) (text string, err error) {
	err = scan(&text)
	return text, err
}

// unlistedDefinitions are definitions of a cluster without an object in any of its trees, although their workload has a
// tree. The agent has not changed them for TombstoneAge.
const unlistedDefinitions = `SELECT d.uid FROM definitions d JOIN workloads w ON w.type = d.type AND w.id = d.id
	WHERE d.clusteruid = ? AND d.uid > ? AND d.at < ? AND NOT d.deleted AND w.treeversion > 0
		AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.type = d.type AND o.id = d.id AND o.key = d.uid AND o.goneat IS NULL)
		AND NOT EXISTS (SELECT 1 FROM workloads v CROSS JOIN objects o WHERE v.clusteruid = d.clusteruid AND v.deletedat IS NULL
			AND o.type = v.type AND o.id = v.id AND o.key = d.uid AND o.goneat IS NULL)
	ORDER BY d.uid LIMIT ?`

func (p *pruner) pruneUnlistedDefinitions(ctx context.Context, cluster string) error {
	before := p.now - p.keep.TombstoneAge.Microseconds()
	for last := ""; ; {
		unlisted, err := collect(ctx, p.store.read, unlistedDefinitions, []any{cluster, last, before, maxRowsPerTx}, scanText)
		if err != nil {
			return fmt.Errorf("list unlisted definitions: %w", err)
		}
		for _, uid := range unlisted {
			err := p.delete(ctx, deletion{
				"definitions", "clusteruid, uid", "definitions WHERE clusteruid = ? AND uid = ? AND at < ?",
				[]any{cluster, uid, before},
				&p.pruned.Definitions,
			})
			if err != nil {
				return err
			}
			last = uid
		}
		if len(unlisted) < maxRowsPerTx {
			return nil
		}
	}
}

// storedBytesError is the difference between the rows of a cluster and its counter, in one snapshot. So it can be added
// to the counter at any time, also after other transactions. Objects of deleted workloads do not count.
var storedBytesError = "SELECT (SELECT COALESCE(SUM" + definitionBytesSQL + `, 0) FROM definitions d WHERE d.clusteruid = c.uid)
	+ (SELECT COALESCE(SUM` + objectBytesSQL + `, 0) FROM workloads w CROSS JOIN objects o
		WHERE w.clusteruid = c.uid AND w.deletedat IS NULL AND o.type = w.type AND o.id = w.id) - c.storedbytes
	FROM clusters c WHERE c.uid = ?`

func (p *pruner) correctStoredBytes(ctx context.Context, cluster string) error {
	difference, err := first(ctx, p.store.read, storedBytesError, []any{cluster}, number)
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	if difference == 0 {
		return nil
	}
	if err := p.store.exec(ctx, "UPDATE clusters SET storedbytes = storedbytes + ? WHERE uid = ?", difference, cluster); err != nil {
		return fmt.Errorf("correct stored bytes: %w", err)
	}
	return nil
}
