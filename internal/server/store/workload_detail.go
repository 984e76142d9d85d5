package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// maxDeletedObjects limits the deleted objects that a workload shows, newest first: CronJobs leave far more of them
// than anyone reads.
const maxDeletedObjects = 500

var workloadQuery = "SELECT " + workloadColumns + " FROM " + workloadTables + " WHERE w.type = ? AND w.id = ?"

const (
	objectColumns = "SELECT o.apigroup, o.apiversion, o.kind, o.namespace, o.name, o.uid, o.owner, o.listed, o.resourceinstanceid, " +
		"o.state, o.health, o.reason, o.cause, o.since, o.goneat, d.uid IS NOT NULL " +
		"FROM objects o LEFT JOIN definitions d ON d.clusteruid = o.clusteruid AND d.uid = o.uid WHERE o.type = ? AND o.id = ? "
	presentQuery = objectColumns + "AND o.goneat IS NULL ORDER BY o.key"
	deletedQuery = objectColumns + "AND o.goneat IS NOT NULL ORDER BY o.goneat DESC LIMIT ?"
)

// Workload returns a workload with its tree: the existing objects, then a limited number of deleted ones, newest first.
// It returns [ErrNotFound] if the workload does not exist.
func (s *Store) Workload(ctx context.Context, instance threeport.Instance) (threeport.WorkloadDetail, error) {
	var detail threeport.WorkloadDetail
	row, err := s.workloadRow(ctx, instance)
	if err != nil {
		return detail, err
	}
	key := []any{instance.Type, int64(instance.ID)}
	present, err := collect(ctx, s.database, presentQuery, key, scanObject)
	if err != nil {
		return detail, fmt.Errorf("list objects of workload: %w", err)
	}
	deleted, err := collect(ctx, s.database, deletedQuery, append(key, maxDeletedObjects), scanObject)
	if err != nil {
		return detail, fmt.Errorf("list deleted objects of workload: %w", err)
	}
	detail.Workload = row.Workload
	detail.Objects = append(append([]threeport.Object{}, present...), deleted...)
	return detail, nil
}

// workloadRow returns the row of a workload, or [ErrNotFound] if it does not exist or is deleted.
func (s *Store) workloadRow(ctx context.Context, instance threeport.Instance) (*workloadRow, error) {
	row, err := first(ctx, s.database, workloadQuery, []any{instance.Type, int64(instance.ID)}, scanWorkload)
	if err != nil {
		return nil, fmt.Errorf("read workload: %w", err)
	}
	if row.deleted {
		return nil, fmt.Errorf("read workload: %w", ErrNotFound)
	}
	return row, nil
}

func scanObject(scan scanner) (threeport.Object, error) {
	var (
		object          threeport.Object
		resource, since int64
		goneAt          sql.NullInt64
		ref             = &object.Object
	)
	err := scan(&ref.Group, &ref.Version, &ref.Kind, &ref.Namespace, &ref.Name, &ref.UID, &object.Owner, &object.Listed, &resource,
		&object.State, &object.Health, &object.Reason, &object.Cause, &since, &goneAt, &object.Defined)
	object.ResourceInstanceID = threeport.ID(resource)
	object.Since, object.Gone = optionalTime(nonZeroTime(since)), optionalTime(goneAt)
	return object, err
}

const definitionQuery = "SELECT type, id, apigroup, apiversion, kind, namespace, name, uid, operation, version, at, previousat, current, previous " +
	"FROM definitions WHERE clusteruid = ? AND uid = ?"

// Definition returns the last reported definition of an object, or [ErrNotFound] if there is none.
func (s *Store) Definition(ctx context.Context, clusterUID, uid string) (threeport.Definition, error) {
	if !storable(clusterUID, uid) {
		return threeport.Definition{}, fmt.Errorf("read definition: %w", ErrNotFound)
	}
	definition, err := first(ctx, s.database, definitionQuery, []any{clusterUID, uid}, scanDefinition)
	if err != nil {
		return definition, fmt.Errorf("read definition: %w", err)
	}
	return definition, nil
}

func scanDefinition(scan scanner) (threeport.Definition, error) {
	var (
		d                 threeport.Definition
		id, version, at   int64
		previousAt        sql.NullInt64
		current, previous sql.NullString
	)
	err := scan(&d.Instance.Type, &id, &d.Object.Group, &d.Object.Version, &d.Object.Kind, &d.Object.Namespace, &d.Object.Name, &d.Object.UID,
		&d.Operation, &version, &at, &previousAt, &current, &previous)
	d.Instance.ID, d.Version = threeport.ID(id), threeport.ID(version)
	d.At, d.PreviousAt = fromMicros(at), optionalTime(previousAt)
	d.Current, d.Previous = document(current), document(previous)
	return d, err
}

// document converts stored JSON; nil for none.
func document(stored sql.NullString) json.RawMessage {
	if stored.String == "" {
		return nil
	}
	return json.RawMessage(stored.String)
}
