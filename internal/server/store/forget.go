package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// forgetVersion lets any later operation replace a definition. It keeps the document, the last known one. Without it, the version or
// the deletion that a stolen credential reported would be final.
const forgetVersion = "version = 0, deleted = FALSE"

// forgetDefinitions forgets the versions of the definitions d that match a condition. A cluster has up to a GiB of them, so it takes many
// transactions. If it is interrupted, the caller repeats it.
func (s *Store) forgetDefinitions(ctx context.Context, condition string, args ...any) error {
	condition += " AND (d.version <> 0 OR d.deleted)"
	type definition struct {
		cluster, uid string
		bytes        int64
	}
	scan := func(scan scanner) (d definition, err error) {
		err = scan(&d.cluster, &d.uid, &d.bytes)
		return d, err
	}
	list := "SELECT d.clusteruid, d.uid, " + definitionBytesSQL + " FROM definitions d WHERE " + condition +
		" AND (d.clusteruid, d.uid) > (?, ?) ORDER BY d.clusteruid, d.uid LIMIT ?"
	update := "UPDATE definitions AS d SET " + forgetVersion + " WHERE " + condition +
		" AND (d.clusteruid, d.uid) > (?, ?) AND (d.clusteruid, d.uid) <= (?, ?)"
	for last := (definition{}); ; {
		found, err := collect(ctx, s.read, list, slices.Concat(args, []any{last.cluster, last.uid, maxRowsPerTx}), scan)
		if err != nil {
			return fmt.Errorf("list definitions: %w", err)
		}
		n := prefixWithin(maxBytesPerTx, found, func(d definition) int64 { return d.bytes })
		if n == 0 {
			return nil
		}
		next, begin := found[n-1], time.Now()
		err = s.exec(ctx, update, slices.Concat(args, []any{last.cluster, last.uid, next.cluster, next.uid})...)
		if err != nil {
			return fmt.Errorf("forget versions of definitions: %w", err)
		}
		if err := letOthersWrite(ctx, begin); err != nil {
			return err
		}
		last = next
	}
}

// forgottenObject are the values of the columns of a resource without an object.
const forgottenObject = "objectuid = NULL, objectversion = NULL, objectdeleted = NULL"

// forgetObjects removes the identity and version of the objects that the last cluster reported for the resources r that match a
// condition, in transactions of limited size.
func (s *Store) forgetObjects(ctx context.Context, condition string, args ...any) error {
	condition += " AND r.objectversion IS NOT NULL"
	type resource struct{ id, bytes int64 }
	scan := func(scan scanner) (r resource, err error) {
		err = scan(&r.id, &r.bytes)
		return r, err
	}
	list := "SELECT r.id, " + bytesOf("r", "jsondefinition", "runtimedefinition") + " FROM workload_resource_instances r WHERE " + condition +
		" AND r.id > ? ORDER BY r.id LIMIT ?"
	update := "UPDATE workload_resource_instances AS r SET " + forgottenObject + " WHERE " + condition + " AND r.id > ? AND r.id <= ?"
	for last := int64(-1); ; {
		found, err := collect(ctx, s.read, list, slices.Concat(args, []any{last, maxRowsPerTx}), scan)
		if err != nil {
			return fmt.Errorf("list resources: %w", err)
		}
		n := prefixWithin(maxBytesPerTx, found, func(r resource) int64 { return r.bytes })
		if n == 0 {
			return nil
		}
		next, begin := found[n-1].id, time.Now()
		if err := s.exec(ctx, update, slices.Concat(args, []any{last, next})...); err != nil {
			return fmt.Errorf("forget objects of resources: %w", err)
		}
		if err := letOthersWrite(ctx, begin); err != nil {
			return err
		}
		last = next
	}
}

// forgetObjectsInTx does the same for the resources of a WorkloadInstance in a transaction. The caller has called forgetObjects before, so
// only a few are left.
func (s *Store) forgetObjectsInTx(ctx context.Context, tx *sql.Tx, workload int64) error {
	_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE workload_resource_instances SET "+forgottenObject+
		" WHERE workloadinstanceid = ? AND objectversion IS NOT NULL"), workload)
	return err
}

// prefixWithin returns how many of the first rows have at most a number of bytes together; at least one, if there is one.
func prefixWithin[T any](most int64, rows []T, bytes func(T) int64) (n int) {
	for n < len(rows) {
		if most -= bytes(rows[n]); n > 0 && most < 0 {
			break
		}
		n++
	}
	return n
}
