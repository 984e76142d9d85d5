package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// maxGone is how many of the objects that are gone a workload shows, the latest: those that make and end Pods all day
// have far more of them than anyone reads.
const maxGone = 500

const (
	workloadQuery = "SELECT " + boardColumns + " FROM " + boardTables + " WHERE w.type = ? AND w.id = ?"

	objectColumns = "SELECT o.apigroup, o.apiversion, o.kind, o.namespace, o.name, o.uid, o.owner, o.listed, o.resourceinstanceid, " +
		"o.state, o.health, o.reason, o.cause, o.since, o.goneat, d.uid IS NOT NULL " +
		"FROM objects o LEFT JOIN definitions d ON d.clusteruid = o.clusteruid AND d.uid = o.uid WHERE o.type = ? AND o.id = ? "
	presentQuery = objectColumns + "AND o.goneat IS NULL ORDER BY o.key"
	goneQuery    = objectColumns + "AND o.goneat IS NOT NULL ORDER BY o.goneat DESC LIMIT ?"
)

// Workload returns a workload with its tree: the objects that exist, and then those that are gone, the latest first. Of
// these it returns a bounded number. [ErrNotFound] if there is no such workload.
func (s *Store) Workload(ctx context.Context, instance threeport.Instance) (threeport.WorkloadDetail, error) {
	var detail threeport.WorkloadDetail
	row, err := s.boardRow(ctx, instance)
	if err != nil {
		return detail, err
	}
	key := []any{instance.Type, int64(instance.ID)}
	present, err := collect(ctx, s, presentQuery, key, scanObject)
	if err != nil {
		return detail, fmt.Errorf("list objects of workload: %w", err)
	}
	gone, err := collect(ctx, s, goneQuery, append(key, maxGone), scanObject)
	if err != nil {
		return detail, fmt.Errorf("list objects of workload that are gone: %w", err)
	}
	detail.Workload = row.Workload
	detail.Objects = append(append([]threeport.Object{}, present...), gone...)
	return detail, nil
}

// boardRow returns the row of a workload that is not deleted; else [ErrNotFound].
func (s *Store) boardRow(ctx context.Context, instance threeport.Instance) (*boardRow, error) {
	row, err := first(ctx, s, workloadQuery, []any{instance.Type, int64(instance.ID)}, scanBoardRow)
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
	object.Since, object.Gone = optionalTime(knownTime(since)), optionalTime(goneAt)
	return object, err
}
