package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// treeNode is an object of a workload's tree with its key.
type treeNode struct {
	*threeport.TreeObject
	of  instanceKey
	key string
}

// maxKey limits the key of a node, in bytes: PostgreSQL limits the size of index entries.
const maxKey = 512

// nodeKey is the object's UID or, for an object that does not exist, its group, kind, namespace and name.
func nodeKey(o *threeport.ObjectRef) string {
	if o.UID != "" {
		return o.UID
	}
	named := strings.Join([]string{o.Group, o.Kind, o.Namespace, o.Name}, "/")
	if len(named) <= maxKey {
		return named
	}
	sum := sha256.Sum256([]byte(named))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// treeChanges are the writes that bring the stored trees to newer versions.
type treeChanges struct {
	workloads []*workloadState
	written   []treeNode // new or changed
	gone      []treeNode // stored, but no longer in the tree
}

// applyTrees writes the trees that are newer than the stored ones. It writes only nodes that differ.
func (a *applyTx) applyTrees(ctx context.Context) error {
	var taken []*item
	var changes treeChanges
	for _, one := range sortedItems(a.items, func(i *item) (instanceKey, bool) { return i.instance, i.Tree != nil }, compareInstances) {
		w := a.workloads[one.instance]
		switch {
		case one.version <= w.treeVersion:
			one.answerNotNewer(w.treeVersion)
			continue
		case w.treeVersion == 0:
			one.answerCreated()
		default:
			one.answerUpdated()
		}
		w.treeVersion = one.version
		taken = append(taken, one)
		changes.workloads = append(changes.workloads, w)
	}
	present, err := a.readTrees(ctx, changes.workloads)
	if err != nil {
		return err
	}
	for _, one := range taken {
		if changes.add(one.instance, a.withoutForeignResources(one), present[one.instance]) {
			w := a.workloads[one.instance]
			w.changedAt = a.nextChangedAt(w.changedAt)
		}
	}
	return a.writeTrees(ctx, changes)
}

// withoutForeignResources returns the objects of a tree, without references to resource rows of other workloads. The
// row may have been deleted or moved since the agent read it. The tree is still correct, and its rejection would hide
// all objects of the workload.
func (a *applyTx) withoutForeignResources(i *item) []*threeport.TreeObject {
	objects := make([]*threeport.TreeObject, len(i.Tree.Objects))
	for n := range objects {
		o := &i.Tree.Objects[n]
		if id := int64(o.ResourceInstanceID); id != 0 && !a.resources[id].belongsTo(i.instance) {
			without := *o
			without.ResourceInstanceID = 0
			o = &without
		}
		objects[n] = o
	}
	return objects
}

// add compares a workload's tree with the stored one and reports whether they differ. Of two nodes with the same key
// (an object that two API groups serve), the first counts.
func (c *treeChanges) add(of instanceKey, objects []*threeport.TreeObject, present map[string]*threeport.TreeObject) bool {
	before := len(c.written) + len(c.gone)
	seen := make(map[string]bool, len(objects))
	for _, o := range objects {
		key := nodeKey(&o.Object)
		if seen[key] {
			continue
		}
		seen[key] = true
		if old, known := present[key]; !known || *old != *o {
			c.written = append(c.written, treeNode{o, of, key})
		}
	}
	for key, old := range present {
		if !seen[key] {
			c.gone = append(c.gone, treeNode{old, of, key})
		}
	}
	return len(c.written)+len(c.gone) > before
}

// readTrees reads the nodes that are not marked as gone.
func (a *applyTx) readTrees(ctx context.Context, of []*workloadState) (map[instanceKey]map[string]*threeport.TreeObject, error) {
	found := make(map[instanceKey]map[string]*threeport.TreeObject, len(of))
	for _, w := range of {
		found[w.instanceKey] = make(map[string]*threeport.TreeObject)
	}
	err := a.exec(ctx, bulk{
		"SELECT o.type, o.id, o.key, o.uid, o.apigroup, o.apiversion, o.kind, o.namespace, o.name, o.owner, o.listed, o.resourceinstanceid, " +
			"o.state, o.health, o.reason, o.cause FROM x CROSS JOIN objects o WHERE o.type = x.type AND o.id = x.id AND o.goneat IS NULL",
		workloadKeyColumns(of), len(of), nil,
	}, func(scan scanner) error {
		var instance instanceKey
		var key string
		var o threeport.TreeObject
		err := scan(&instance.kind, &instance.id, &key, &o.Object.UID, &o.Object.Group, &o.Object.Version, &o.Object.Kind, &o.Object.Namespace,
			&o.Object.Name, &o.Owner, &o.Listed, (*int64)(&o.ResourceInstanceID), &o.State, &o.Health, &o.Reason, &o.Cause)
		found[instance][key] = &o
		return err
	})
	return found, err
}

func (a *applyTx) writeTrees(ctx context.Context, c treeChanges) error {
	if err := a.writeNodes(ctx, c.written); err != nil {
		return err
	}
	err := a.exec(ctx, bulk{
		"UPDATE objects SET goneat = ? FROM x WHERE objects.type = x.type AND objects.id = x.id AND objects.key = x.key",
		nodeKeyColumns(c.gone), len(c.gone),
		[]any{a.now},
	}, nil)
	if err != nil {
		return err
	}
	return a.exec(ctx, bulk{
		"UPDATE workloads SET treeversion = x.treeversion, changedat = x.changedat FROM x WHERE workloads.type = x.type AND workloads.id = x.id",
		append(workloadKeyColumns(c.workloads),
			integers("treeversion", c.workloads, func(w *workloadState) int64 { return w.treeVersion }),
			integers("changedat", c.workloads, func(w *workloadState) int64 { return w.changedAt })),
		len(c.workloads), nil,
	}, nil)
}

func nodeKeyColumns(nodes []treeNode) []column {
	return []column{
		texts("type", nodes, func(n treeNode) string { return n.of.kind }),
		integers("id", nodes, func(n treeNode) int64 { return n.of.id }),
		texts("key", nodes, func(n treeNode) string { return n.key }),
	}
}

// writeNodes upserts nodes. A node that was gone is restored. Since changes only with the health.
func (a *applyTx) writeNodes(ctx context.Context, nodes []treeNode) error {
	return a.exec(ctx, bulk{
		`INSERT INTO objects (type, id, key, clusteruid, uid, apigroup, apiversion, kind, namespace, name, owner, listed,
			resourceinstanceid, state, health, reason, cause, since)
		SELECT x.type, x.id, x.key, CAST(? AS TEXT), x.uid, x.apigroup, x.apiversion, x.kind, x.namespace, x.name, x.owner, x.listed,
			x.resourceinstanceid, x.state, x.health, x.reason, x.cause, CAST(? AS BIGINT)
		FROM x WHERE TRUE
		ON CONFLICT (type, id, key) DO UPDATE SET apigroup = excluded.apigroup, apiversion = excluded.apiversion, kind = excluded.kind,
			namespace = excluded.namespace, name = excluded.name, owner = excluded.owner, listed = excluded.listed,
			resourceinstanceid = excluded.resourceinstanceid, state = excluded.state, health = excluded.health,
			reason = excluded.reason, cause = excluded.cause,
			since = CASE WHEN objects.health = excluded.health THEN objects.since ELSE excluded.since END, goneat = NULL`,
		append(nodeKeyColumns(nodes),
			texts("uid", nodes, func(n treeNode) string { return n.Object.UID }),
			texts("apigroup", nodes, func(n treeNode) string { return n.Object.Group }),
			texts("apiversion", nodes, func(n treeNode) string { return n.Object.Version }),
			texts("kind", nodes, func(n treeNode) string { return n.Object.Kind }),
			texts("namespace", nodes, func(n treeNode) string { return n.Object.Namespace }),
			texts("name", nodes, func(n treeNode) string { return n.Object.Name }),
			texts("owner", nodes, func(n treeNode) string { return n.Owner }),
			booleans("listed", nodes, func(n treeNode) bool { return n.Listed }),
			integers("resourceinstanceid", nodes, func(n treeNode) int64 { return int64(n.ResourceInstanceID) }),
			texts("state", nodes, func(n treeNode) string { return n.State }),
			texts("health", nodes, func(n treeNode) string { return n.Health }),
			texts("reason", nodes, func(n treeNode) string { return n.Reason }),
			texts("cause", nodes, func(n treeNode) string { return n.Cause })),
		len(nodes),
		[]any{a.agent.ClusterUID, a.now},
	}, nil)
}
