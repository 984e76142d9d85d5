package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// maxPod bounds the facts of a Pod, and maxGonePod those of one that is gone, in bytes of JSON. A workload keeps thousands of Pods that
// are gone, and shows hundreds of them.
const (
	maxPod     = 32 << 10
	maxGonePod = 4 << 10
)

// maxInterruptions is how often another process may write the workload's tree between the parts of this one. Then the rest is written at
// once, because two processes that write different trees would undo each other's parts for ever.
const maxInterruptions = 2

// treeNode is an object of a workload's tree with its key.
type treeNode struct {
	*storedObject // nil if it is gone
	of            instanceKey
	key           string
	// growth is how many bytes the node adds to the stored one. A node that was gone counts as new, although its row exists;
	// [Store.Prune] corrects that.
	growth int64
}

// storedObject is an object of a tree as its row has it.
type storedObject struct {
	threeport.TreeObject        // without Pod and Since
	pod                  string // the facts of a Pod as JSON; empty for none
	since                int64  // when its health became what it is, in microseconds; 0 for one that was read
}

// isLike reports whether an object equals another one, except for the start of the same health.
func (o storedObject) isLike(other storedObject) bool {
	o.since = other.since
	return o == other
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

// maxGone is the number of gone objects that a workload keeps: the newest. Objects that are gone since the same report are
// deleted together.
const maxGone = 20_000

// treeChanges are the writes that bring stored trees to newer versions.
type treeChanges struct {
	written []treeNode // new or changed
	gone    []treeNode // stored, but no longer in the tree
}

// treeWrite is a tree, or the rest of one, that has to be written.
type treeWrite struct {
	treeChanges
	counts        treeCounts // of the whole tree
	after         int64      // the workload's treeWrites after the transaction that left this rest
	interruptions int        // how often another process wrote the tree between two parts
}

// applyTrees writes the trees that are newer than the stored ones. It writes only nodes that differ.
func (a *applyTx) applyTrees(ctx context.Context) error {
	var newer []*item
	var unread []*workloadState
	for _, one := range sortedItems(a.items, func(i *item) (instanceKey, bool) { return i.instance, i.Tree != nil }, compareInstances) {
		w := a.workloads[one.instance]
		if one.version <= w.treeVersion {
			one.answerNotNewer(w.treeVersion)
			continue
		}
		newer = append(newer, one)
		if !one.continues(w) {
			unread = append(unread, w)
		}
	}
	present, err := a.readTrees(ctx, unread)
	if err != nil {
		return err
	}
	var changes treeChanges
	var finished, unfinished []*workloadState
	for _, one := range newer {
		w := a.workloads[one.instance]
		write := one.rest
		if !one.continues(w) {
			objects := a.storedObjects(one)
			write = &treeWrite{treeChanges: diffTree(one.instance, objects, present[one.instance]), counts: countTree(objects, one.Tree.Filtered)}
			if one.rest != nil {
				write.interruptions = one.rest.interruptions + 1
			}
		}
		if !a.hasSpace(write.growth()) {
			a.rejectOverQuota(one, "tree")
			continue
		}
		part := a.applyTree(one, w, write)
		if one.isAnswered() {
			finished = append(finished, w)
		} else {
			unfinished = append(unfinished, w)
		}
		changes.written, changes.gone = append(changes.written, part.written...), append(changes.gone, part.gone...)
	}
	if err := a.writeNodes(ctx, changes); err != nil {
		return err
	}
	if err := a.writeTreeParts(ctx, unfinished); err != nil {
		return err
	}
	return a.writeTreeVersions(ctx, finished)
}

// continues reports whether the stored tree is as the part before left it.
func (i *item) continues(w *workloadState) bool {
	return i.rest != nil && i.rest.after == w.treeWrites
}

// applyTree returns the changes for this transaction. It leaves the others to the next transaction; until then the workload has the old
// version, and objects of both trees. After a crash the agent sends the tree again, and only what is left differs.
func (a *applyTx) applyTree(one *item, w *workloadState, write *treeWrite) treeChanges {
	if write.count() > 0 {
		w.treeWrites++
	}
	if write.count() > 0 || write.counts.filtered != w.tree.filtered {
		w.changedAt = a.nextChangedAt(w.changedAt)
	}
	part, rest := write.split()
	if rest.count() > 0 && write.interruptions < maxInterruptions {
		a.unfinished = append(a.unfinished, unfinishedItem{one, &treeWrite{
			treeChanges: rest, counts: write.counts, after: w.treeWrites, interruptions: write.interruptions,
		}})
	} else {
		part = write.treeChanges
		if w.treeVersion == 0 {
			one.answerCreated()
		} else {
			one.answerUpdated()
		}
		w.treeVersion, w.tree = one.version, write.counts
	}
	a.stored.added += part.growth()
	return part
}

// storedObjects returns the objects of a tree as they are stored: with causes of limited length, and without references
// to resource rows of other workloads. The row may have been deleted or moved since the agent read it. The tree is still
// correct, and its rejection would hide all objects of the workload.
func (a *applyTx) storedObjects(i *item) []*storedObject {
	objects := make([]*storedObject, len(i.Tree.Objects))
	for n := range objects {
		o := &storedObject{TreeObject: i.Tree.Objects[n]}
		if id := int64(o.ResourceInstanceID); id != 0 && !a.resources[id].belongsTo(i.instance) {
			o.ResourceInstanceID = 0
		}
		o.Cause = threeport.CutTreeCause(o.Cause)
		o.pod, o.Pod = podText(o.Pod), nil
		o.since, o.Since = a.now, nil
		if at := i.Tree.Objects[n].Since; at != nil {
			o.since = min(at.UnixMicro(), a.now)
		}
		objects[n] = o
	}
	return objects
}

// podText returns the facts of a Pod as they are stored: without the last containers if they exceed maxPod. Equal facts have equal texts.
func podText(facts *threeport.PodFacts) string {
	if facts == nil {
		return ""
	}
	for count := len(facts.Containers); ; count /= 2 {
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(threeport.PodFacts{Node: facts.Node, Containers: facts.Containers[:count]}) // validateReport has checked its times
		if text.Len() <= maxPod || count == 0 {
			return strings.TrimSuffix(text.String(), "\n")
		}
	}
}

// diffTree compares a workload's tree with the stored one. Of two nodes with the same key (an object that two API groups
// serve), the first counts.
func diffTree(of instanceKey, objects []*storedObject, present map[string]*storedObject) (c treeChanges) {
	seen := make(map[string]bool, len(objects))
	for _, o := range objects {
		key := nodeKey(&o.Object)
		if seen[key] {
			continue
		}
		seen[key] = true
		switch old, known := present[key]; {
		case !known:
			c.written = append(c.written, treeNode{o, of, key, treeNodeBytes(key, o)})
		case !old.isLike(*o):
			c.written = append(c.written, treeNode{o, of, key, treeNodeBytes(key, o) - treeNodeBytes(key, old)})
		}
	}
	for key, old := range present {
		if seen[key] {
			continue
		}
		node := treeNode{nil, of, key, 0} // its texts are not needed any longer
		if len(old.pod) > maxGonePod {
			node.growth = -int64(len(old.pod))
		}
		c.gone = append(c.gone, node)
	}
	return c
}

func (c *treeChanges) count() int { return len(c.written) + len(c.gone) }

// split returns the changes for one transaction and the others.
func (c *treeChanges) split() (first, others treeChanges) {
	written, bytes := 0, int64(0)
	for written < min(nodesPerTx, len(c.written)) && (written == 0 || bytes < bytesPerTx) {
		bytes += treeNodeBytes(c.written[written].key, c.written[written].storedObject)
		written++
	}
	gone := min(nodesPerTx-written, len(c.gone))
	if written < len(c.written) {
		gone = 0
	}
	return treeChanges{c.written[:written], c.gone[:gone]}, treeChanges{c.written[written:], c.gone[gone:]}
}

// growth is how many bytes the changes add to the stored ones.
func (c *treeChanges) growth() (bytes int64) {
	for _, nodes := range [][]treeNode{c.written, c.gone} {
		for _, n := range nodes {
			bytes += n.growth
		}
	}
	return bytes
}

// readTrees reads the nodes that are not marked as gone.
func (a *applyTx) readTrees(ctx context.Context, of []*workloadState) (map[instanceKey]map[string]*storedObject, error) {
	found := make(map[instanceKey]map[string]*storedObject, len(of))
	for _, w := range of {
		found[w.instanceKey] = make(map[string]*storedObject)
	}
	err := a.exec(ctx, bulk{
		"SELECT o.type, o.id, o.key, o.uid, o.apigroup, o.apiversion, o.kind, o.namespace, o.name, o.owner, o.listed, o.resourceinstanceid, " +
			"o.state, o.health, o.reason, o.cause, o.pod FROM x CROSS JOIN objects o WHERE o.type = x.type AND o.id = x.id AND o.goneat IS NULL",
		workloadKeyColumns(of), len(of), nil,
	}, addNodes(found))
	return found, err
}

// addNodes returns a function that adds the node of a row to the nodes of its workload.
func addNodes(found map[instanceKey]map[string]*storedObject) func(scanner) error {
	return func(scan scanner) error {
		var instance instanceKey
		var key string
		var o storedObject
		err := scan(&instance.kind, &instance.id, &key, &o.Object.UID, &o.Object.Group, &o.Object.Version, &o.Object.Kind, &o.Object.Namespace,
			&o.Object.Name, &o.Owner, &o.Listed, (*int64)(&o.ResourceInstanceID), &o.State, &o.Health, &o.Reason, &o.Cause, &o.pod)
		if err != nil {
			return err
		}
		found[instance][key] = &o
		return nil
	}
}

// writeNodes writes the changes of trees.
func (a *applyTx) writeNodes(ctx context.Context, c treeChanges) error {
	if err := a.upsertNodes(ctx, c.written); err != nil {
		return err
	}
	err := a.exec(ctx, bulk{
		"UPDATE objects SET goneat = ?, pod = CASE WHEN octet_length(pod) > ? THEN '' ELSE pod END FROM x WHERE objects.type = x.type AND objects.id = x.id AND objects.key = x.key",
		nodeKeyColumns(c.gone), len(c.gone),
		[]any{a.now, maxGonePod},
	}, nil)
	if err != nil {
		return err
	}
	return a.deleteExcessGone(ctx, c.gone)
}

// writeTreeParts writes that a part of the trees was written.
func (a *applyTx) writeTreeParts(ctx context.Context, of []*workloadState) error {
	return a.exec(ctx, bulk{
		"UPDATE workloads SET treewrites = x.treewrites, changedat = x.changedat FROM x WHERE workloads.type = x.type AND workloads.id = x.id",
		append(workloadKeyColumns(of), treeWritesColumn(of), changedAtColumn(of)), len(of), nil,
	}, nil)
}

func treeWritesColumn(of []*workloadState) column {
	return integers("treewrites", of, func(w *workloadState) int64 { return w.treeWrites })
}

// writeTreeVersions writes the versions and counts of whole trees.
func (a *applyTx) writeTreeVersions(ctx context.Context, of []*workloadState) error {
	return a.exec(ctx, bulk{
		`UPDATE workloads SET treeversion = x.treeversion, treewrites = x.treewrites, listed = x.listed, listedhealthy = x.listedhealthy, pods = x.pods,
			podshealthy = x.podshealthy, filtered = x.filtered, namespaces = x.namespaces, changedat = x.changedat
			FROM x WHERE workloads.type = x.type AND workloads.id = x.id`,
		append(workloadKeyColumns(of),
			integers("treeversion", of, func(w *workloadState) int64 { return w.treeVersion }),
			treeWritesColumn(of),
			integers("listed", of, func(w *workloadState) int64 { return w.tree.listed.Total }),
			integers("listedhealthy", of, func(w *workloadState) int64 { return w.tree.listed.Healthy }),
			integers("pods", of, func(w *workloadState) int64 { return w.tree.pods.Total }),
			integers("podshealthy", of, func(w *workloadState) int64 { return w.tree.pods.Healthy }),
			integers("filtered", of, func(w *workloadState) int64 { return w.tree.filtered }),
			texts("namespaces", of, func(w *workloadState) string { return w.tree.namespaces }),
			changedAtColumn(of)),
		len(of), nil,
	}, nil)
}

// deleteExcessGone keeps the newest maxGone gone objects of each workload in added, and deletes the others.
func (a *applyTx) deleteExcessGone(ctx context.Context, added []treeNode) error {
	var of []*workloadState
	for n, node := range added { // the nodes of a workload follow each other
		if n == 0 || node.of != added[n-1].of {
			of = append(of, a.workloads[node.of])
		}
	}
	type excess struct {
		of     instanceKey
		before int64 // the goneat from which on they are kept
	}
	var found []excess
	err := a.exec(ctx, bulk{
		`SELECT x.type, x.id, COALESCE((SELECT o.goneat FROM objects o WHERE o.type = x.type AND o.id = x.id AND o.goneat IS NOT NULL
			ORDER BY o.goneat DESC LIMIT 1 OFFSET ?), 0) FROM x`,
		workloadKeyColumns(of), len(of),
		[]any{maxGone},
	}, func(scan scanner) error {
		var e excess
		if err := scan(&e.of.kind, &e.of.id, &e.before); err != nil {
			return err
		}
		found = append(found, e)
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range found {
		if e.before == 0 {
			continue
		}
		_, err := a.tx.ExecContext(ctx, a.store.dialect.rebind("DELETE FROM objects WHERE type = ? AND id = ? AND goneat < ?"), e.of.kind, e.of.id, e.before)
		if err != nil {
			return err
		}
	}
	return nil
}

func nodeKeyColumns(nodes []treeNode) []column {
	return []column{
		texts("type", nodes, func(n treeNode) string { return n.of.kind }),
		integers("id", nodes, func(n treeNode) int64 { return n.of.id }),
		texts("key", nodes, func(n treeNode) string { return n.key }),
	}
}

// upsertNodes writes new and changed nodes. A node that was gone is restored. Since changes only with the health, and never to an earlier
// time. But a node without a UID that was gone is another absence of an object, with a start of its own.
func (a *applyTx) upsertNodes(ctx context.Context, nodes []treeNode) error {
	return a.exec(ctx, bulk{
		`INSERT INTO objects (type, id, key, clusteruid, uid, apigroup, apiversion, kind, namespace, name, owner, listed,
			resourceinstanceid, state, health, reason, cause, pod, since)
		SELECT x.type, x.id, x.key, CAST(? AS TEXT), x.uid, x.apigroup, x.apiversion, x.kind, x.namespace, x.name, x.owner, x.listed,
			x.resourceinstanceid, x.state, x.health, x.reason, x.cause, x.pod, x.since
		FROM x WHERE TRUE
		ON CONFLICT (type, id, key) DO UPDATE SET apigroup = excluded.apigroup, apiversion = excluded.apiversion, kind = excluded.kind,
			namespace = excluded.namespace, name = excluded.name, owner = excluded.owner, listed = excluded.listed,
			resourceinstanceid = excluded.resourceinstanceid, state = excluded.state, health = excluded.health,
			reason = excluded.reason, cause = excluded.cause, pod = excluded.pod,
			since = CASE WHEN (objects.goneat IS NULL OR objects.uid <> '') AND (objects.health = excluded.health OR objects.since > excluded.since)
				THEN objects.since ELSE excluded.since END,
			goneat = NULL`,
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
			texts("cause", nodes, func(n treeNode) string { return n.Cause }),
			texts("pod", nodes, func(n treeNode) string { return n.pod }),
			integers("since", nodes, func(n treeNode) int64 { return n.since })),
		len(nodes),
		[]any{a.agent.ClusterUID},
	}, nil)
}
