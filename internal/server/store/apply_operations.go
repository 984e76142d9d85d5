package store

import (
	"cmp"
	"context"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// objectState is the stored version of an object, in its definition or in its resource's row.
type objectState struct {
	version int64
	deleted bool
}

// isSupersededBy reports whether an operation on the same object is newer. A deletion is final.
func (s objectState) isSupersededBy(i *item) bool {
	return !s.deleted && (i.isDeletion() || i.version > s.version)
}

// after is the state after the operation.
func (s objectState) after(i *item) objectState {
	return objectState{max(s.version, i.version), i.isDeletion()}
}

// definition is a row of definitions, before and after the transaction.
type definition struct {
	objectState
	owner    instanceKey
	resource int64
	// item is the last applied operation; nil for none.
	item *item
	// bytes is the size that counts towards the quota. stored is the row before the transaction.
	bytes  int64
	stored storedDefinition
}

// storedDefinition has the version of a definition, the digest of its spec, and the sizes of its documents in bytes.
type storedDefinition struct {
	version           int64
	specDigest        string
	current, previous int64
	at                int64 // when the current document was received
	// isBrief reports whether the spec changed less than briefSpec ago, and previousDigest is the digest of the one before.
	isBrief        bool
	previousDigest string
}

// briefSpec is how long a spec is current before it can replace the previous definition. Edits in quick succession, such as an
// image and an annotation, are one change.
const briefSpec = time.Minute

// applyOperations applies the operations that are newer than the stored state, separately to the object's definition
// and to the v0 resource row. The late deletion of an object may apply to its definition only, because the row already
// has another object.
func (a *applyTx) applyOperations(ctx context.Context) error {
	items := sortedItems(a.items, func(i *item) (string, bool) {
		if i.Operation == nil {
			return "", false
		}
		return i.Operation.Object.UID, true
	}, cmp.Compare)
	definitions, err := a.readDefinitions(ctx, items)
	if err != nil {
		return err
	}
	var defined, rows []*item
	for _, one := range items {
		uid := one.Operation.Object.UID
		d, known := definitions[uid]
		if !known {
			d = newDefinition()
		}
		stored, takesDefinition := d.version, d.takes(one)
		if takesDefinition && !a.reserve(d.bytesAfter(one)-d.bytes) {
			a.rejectOverQuota(one, "operation")
			continue
		}
		if takesDefinition {
			d.apply(one)
			defined = append(defined, one)
		}
		definitions[uid] = d
		takesRow := a.applyToRow(one)
		if takesRow {
			rows = append(rows, one)
		}
		switch {
		case !known:
			one.answerCreated()
		case takesDefinition || takesRow:
			one.answerUpdated()
		default:
			d.answerUnchanged(one, stored)
		}
	}
	if err := a.writeDefinitions(ctx, definitions, defined); err != nil {
		return err
	}
	return a.writeResourceRows(ctx, rows)
}

// newDefinition is a definition without a row.
func newDefinition() *definition {
	return &definition{objectState: objectState{version: -1}, stored: storedDefinition{version: -1}}
}

// answerUnchanged answers an operation that changes nothing. A deletion equals any other deletion of the object.
func (d *definition) answerUnchanged(i *item, stored int64) {
	if d.deleted && i.isDeletion() {
		stored = i.version
	}
	i.answerNotNewer(stored)
}

// takes reports whether the operation changes the definition. An equal version from another workload or resource moves
// the definition there, so that it lives as long as the workload that reported it last.
func (d *definition) takes(i *item) bool {
	_, resource := i.resourceInstance()
	moves := !d.deleted && i.version == d.version && (d.owner != i.instance || d.resource != resource)
	return d.isSupersededBy(i) || moves
}

// apply applies an operation that changes the definition.
func (d *definition) apply(i *item) {
	d.bytes = d.bytesAfter(i)
	_, d.resource = i.resourceInstance()
	d.objectState, d.owner, d.item = d.after(i), i.instance, i
}

// changesSpec reports whether the operation deletes the object, or its definition has another spec than the stored one.
func (d *definition) changesSpec(i *item) bool {
	after := d.after(i)
	return after.deleted || after.version != d.stored.version && i.specDigest != d.stored.specDigest
}

// replacesPrevious reports whether the stored definition becomes the previous one, because the operation changes the spec. A spec that
// was current for less than briefSpec does not, so that the previous definition is the one before all edits in quick succession. It does if
// it is the first one, if the object is deleted, or if the last edit restored the previous spec.
func (d *definition) replacesPrevious(i *item) bool {
	keeps := d.stored.isBrief && d.stored.previous > 0 && !d.after(i).deleted && i.specDigest != d.stored.previousDigest
	return d.changesSpec(i) && !keeps
}

// bytesAfter is the size of the row that writeDefinitions stores for the operation.
func (d *definition) bytesAfter(i *item) int64 {
	previous := d.stored.previous
	if d.replacesPrevious(i) {
		previous = d.stored.current
	}
	return objectRefBytes(&i.Operation.Object) + int64(len(i.Operation.Operation)+len(i.definition)) + previous
}

// applyToRow applies the operation to the row of its resource if it is newer. Between two objects of one resource
// (deleted and created again), the version decides.
func (a *applyTx) applyToRow(i *item) bool {
	_, id := i.resourceInstance()
	if id == 0 {
		return false
	}
	row, uid := a.resources[id], i.Operation.Object.UID
	state := objectState{row.objectVersion, row.objectDeleted}
	if row.objectUID != uid {
		if i.version <= row.objectVersion {
			return false
		}
		state = objectState{version: -1}
	}
	if !state.isSupersededBy(i) {
		return false
	}
	state = state.after(i)
	row.objectUID, row.objectVersion, row.objectDeleted = uid, state.version, state.deleted
	return true
}

func (a *applyTx) readDefinitions(ctx context.Context, items []*item) (map[string]*definition, error) {
	found := make(map[string]*definition, len(items))
	err := a.exec(ctx, bulk{
		"SELECT d.uid, d.version, d.deleted, d.type, d.id, d.resourceinstanceid, " + definitionBytesSQL + ", " +
			"COALESCE(d.specdigest, ''), COALESCE(octet_length(d.current), 0), COALESCE(octet_length(d.previous), 0), d.at, COALESCE(d.changedat, 0) FROM x CROSS JOIN definitions d WHERE d.clusteruid = ? AND d.uid = x.uid",
		[]column{texts("uid", items, func(i *item) string { return i.Operation.Object.UID })},
		len(items),
		[]any{a.agent.ClusterUID},
	}, func(scan scanner) error {
		var uid string
		var d definition
		var changedAt int64
		err := scan(&uid, &d.version, &d.deleted, &d.owner.kind, &d.owner.id, &d.resource, &d.bytes,
			&d.stored.specDigest, &d.stored.current, &d.stored.previous, &d.stored.at, &changedAt)
		if err != nil {
			return err
		}
		d.stored.version, d.stored.isBrief = d.version, a.now-changedAt < briefSpec.Microseconds()
		found[uid] = &d
		return nil
	})
	if err != nil {
		return nil, err
	}
	for uid, d := range found {
		if d.stored.specDigest == "" && d.stored.current > 0 { // stored before there were digests
			if d.stored.specDigest, err = a.storedSpecDigest(ctx, "current", uid); err != nil {
				return nil, err
			}
		}
	}
	for _, one := range items {
		d := found[one.Operation.Object.UID]
		if d == nil || d.stored.previousDigest != "" || !d.stored.isBrief || d.stored.previous == 0 || !d.changesSpec(one) {
			continue // the digest is not needed
		}
		if d.stored.previousDigest, err = a.storedSpecDigest(ctx, "previous", one.Operation.Object.UID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// storedSpecDigest computes the digest of a stored definition: the column current or previous.
func (a *applyTx) storedSpecDigest(ctx context.Context, column, uid string) (string, error) {
	var definition string
	err := a.tx.QueryRowContext(ctx, a.store.dialect.rebind("SELECT "+column+" FROM definitions WHERE clusteruid = ? AND uid = ?"),
		a.agent.ClusterUID, uid).Scan(&definition)
	return specDigest(definition), err
}

// writeDefinitions writes the changed definitions, each once.
func (a *applyTx) writeDefinitions(ctx context.Context, definitions map[string]*definition, applied []*item) error {
	var written []*definition
	for _, one := range applied {
		if d := definitions[one.Operation.Object.UID]; d.item == one {
			written = append(written, d)
		}
	}
	object := func(of func(*threeport.ObjectRef) string) func(*definition) string {
		return func(d *definition) string { return of(&d.item.Operation.Object) }
	}
	return a.exec(ctx, bulk{
		`INSERT INTO definitions (clusteruid, uid, type, id, apigroup, apiversion, kind, namespace, name, resourceinstanceid,
			operation, version, deleted, current, specdigest, created, at, changedat, previousat, goneat)
		SELECT CAST(? AS TEXT), x.uid, x.type, x.id, x.apigroup, x.apiversion, x.kind, x.namespace, x.name, x.resourceinstanceid,
			x.operation, x.version, x.deleted, x.current, x.specdigest, x.created, CAST(? AS BIGINT), x.changedat, x.previousat, x.goneat
		FROM x WHERE TRUE
		ON CONFLICT (clusteruid, uid) DO UPDATE SET type = excluded.type, id = excluded.id,
			apigroup = excluded.apigroup, apiversion = excluded.apiversion, kind = excluded.kind, namespace = excluded.namespace,
			name = excluded.name, resourceinstanceid = excluded.resourceinstanceid, operation = excluded.operation,
			version = excluded.version, deleted = excluded.deleted,
			previous = CASE WHEN excluded.previousat IS NULL THEN definitions.previous ELSE definitions.current END,
			previousat = COALESCE(excluded.previousat, definitions.previousat),
			current = excluded.current, specdigest = excluded.specdigest,
			created = COALESCE(excluded.created, definitions.created), at = excluded.at,
			changedat = COALESCE(excluded.changedat, definitions.changedat), goneat = excluded.goneat`,
		[]column{
			texts("uid", written, object(func(o *threeport.ObjectRef) string { return o.UID })),
			texts("type", written, func(d *definition) string { return d.owner.kind }),
			integers("id", written, func(d *definition) int64 { return d.owner.id }),
			texts("apigroup", written, object(func(o *threeport.ObjectRef) string { return o.Group })),
			texts("apiversion", written, object(func(o *threeport.ObjectRef) string { return o.Version })),
			texts("kind", written, object(func(o *threeport.ObjectRef) string { return o.Kind })),
			texts("namespace", written, object(func(o *threeport.ObjectRef) string { return o.Namespace })),
			texts("name", written, object(func(o *threeport.ObjectRef) string { return o.Name })),
			integers("resourceinstanceid", written, func(d *definition) int64 { return d.resource }),
			texts("operation", written, func(d *definition) string { return d.item.Operation.Operation }),
			integers("version", written, func(d *definition) int64 { return d.version }),
			booleans("deleted", written, func(d *definition) bool { return d.deleted }),
			optionalTexts("current", written, func(d *definition) *string { return d.item.definitionOrNil() }),
			texts("specdigest", written, func(d *definition) string { return d.item.specDigest }),
			optionalIntegers("created", written, func(d *definition) *int64 { return d.item.created }),
			optionalIntegers("changedat", written, func(d *definition) *int64 {
				if !d.changesSpec(d.item) {
					return nil
				}
				return &a.now
			}),
			optionalIntegers("previousat", written, func(d *definition) *int64 {
				if d.stored.at == 0 || !d.replacesPrevious(d.item) {
					return nil
				}
				return &d.stored.at
			}),
			optionalIntegers("goneat", written, func(d *definition) *int64 {
				if !d.deleted {
					return nil
				}
				return &a.now
			}),
		},
		len(written),
		[]any{a.agent.ClusterUID, a.now},
	}, nil)
}

// writeResourceRows writes the changed resource rows, each once.
func (a *applyTx) writeResourceRows(ctx context.Context, applied []*item) error {
	last := make(map[int64]*item, len(applied))
	for _, one := range applied {
		_, id := one.resourceInstance()
		last[id] = one
	}
	written := sortedItems(applied, func(i *item) (int64, bool) {
		_, id := i.resourceInstance()
		return id, last[id] == i
	}, cmp.Compare)
	row := func(i *item) *resourceRow {
		_, id := i.resourceInstance()
		return a.resources[id]
	}
	return a.exec(ctx, bulk{
		`UPDATE workload_resource_instances SET lastoperation = x.operation, runtimedefinition = COALESCE(x.definition, runtimedefinition),
			objectuid = x.uid, objectversion = x.version, objectdeleted = x.deleted, updatedat = ?
		FROM x WHERE workload_resource_instances.id = x.id AND workload_resource_instances.deletedat IS NULL`,
		[]column{
			integers("id", written, func(i *item) int64 { return row(i).id }),
			texts("operation", written, func(i *item) string { return i.Operation.Operation }),
			optionalTexts("definition", written, (*item).definitionOrNil),
			texts("uid", written, func(i *item) string { return row(i).objectUID }),
			integers("version", written, func(i *item) int64 { return row(i).objectVersion }),
			booleans("deleted", written, func(i *item) bool { return row(i).objectDeleted }),
		},
		len(written),
		[]any{a.now},
	}, nil)
}

// definitionOrNil is the definition of the operation; nil for none.
func (i *item) definitionOrNil() *string {
	if i.definition == "" {
		return nil
	}
	return &i.definition
}
