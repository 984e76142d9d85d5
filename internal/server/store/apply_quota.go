package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// rowBytes counts for each definition and object in addition to its texts: the other columns, and the indexes.
const rowBytes = 256

// SQL expressions for the size of a definition d and of an object o. They equal bytesAfter and treeNodeBytes.
var (
	definitionBytesSQL = bytesOf("d", "uid", "apigroup", "apiversion", "kind", "namespace", "name", "operation", "current", "previous")
	objectBytesSQL     = bytesOf("o", "key", "uid", "apigroup", "apiversion", "kind", "namespace", "name", "owner", "state", "health", "reason", "cause", "pod")
)

// bytesOf is an SQL expression for the size of a row. In neither database octet_length loads a long text.
func bytesOf(table string, columns ...string) string {
	terms := []string{fmt.Sprint(rowBytes)}
	for _, column := range columns {
		terms = append(terms, "COALESCE(octet_length("+table+"."+column+"), 0)")
	}
	return "(" + strings.Join(terms, " + ") + ")"
}

func objectRefBytes(o *threeport.ObjectRef) int64 {
	return int64(rowBytes + len(o.UID) + len(o.Group) + len(o.Version) + len(o.Kind) + len(o.Namespace) + len(o.Name))
}

func treeNodeBytes(key string, o *storedObject) int64 {
	return objectRefBytes(&o.Object) + int64(len(key)+len(o.Owner)+len(o.State)+len(o.Health)+len(o.Reason)+len(o.Cause)+len(o.pod))
}

// storedBytes is the size of a cluster's definitions and objects. Each transaction keeps it up to date, and
// [Store.Prune] corrects it by the deleted rows once it exceeds half of the quota.
type storedBytes struct {
	before int64 // the transaction
	added  int64
}

// reserve counts bytes that the transaction adds or, if negative, frees. It reports false if they exceed the quota.
func (a *applyTx) reserve(bytes int64) bool {
	if !a.hasSpace(bytes) {
		return false
	}
	a.stored.added += bytes
	return true
}

func (a *applyTx) hasSpace(bytes int64) bool {
	return bytes <= 0 || a.stored.before+a.stored.added+bytes <= a.store.config.ClusterBytes
}

// rejectOverQuota rejects a report that needs more space than the cluster has left. member is the part of the report.
func (a *applyTx) rejectOverQuota(one *item, member string) {
	a.overQuota++
	one.reject(threeport.ProblemQuota, member+": "+a.quotaDetail())
}

func (a *applyTx) quotaDetail() string {
	return fmt.Sprintf("the definitions and objects of a cluster, with the deleted ones, have at most %d bytes together: see --max-cluster-bytes", a.store.config.ClusterBytes)
}

// recordStoredBytes writes the size to the cluster's row, which recordHeartbeat locked.
func (a *applyTx) recordStoredBytes(ctx context.Context) error {
	if a.stored.added == 0 {
		return nil
	}
	_, err := a.tx.ExecContext(ctx, a.store.dialect.rebind("UPDATE clusters SET storedbytes = storedbytes + ? WHERE uid = ?"),
		a.stored.added, a.agent.ClusterUID)
	return err
}
