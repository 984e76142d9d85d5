package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// maxDeletedObjects limits the deleted objects that a workload shows, newest first: CronJobs leave far more of them
// than anyone reads.
const maxDeletedObjects = 500

var workloadQuery = "SELECT " + workloadColumns(maxMessage) + " FROM " + workloadTables + " WHERE w.type = ? AND w.id = ?"

var (
	objectColumns = "SELECT o.key, o.apigroup, o.apiversion, o.kind, o.namespace, o.name, o.uid, o.owner, o.listed, o.resourceinstanceid, " +
		"o.state, o.health, o.reason, o.cause, " +
		fmt.Sprintf("CASE WHEN o.goneat IS NOT NULL AND octet_length(o.pod) > %d THEN '' ELSE o.pod END, ", maxGonePod) +
		"o.since, o.goneat, d.created, d.goneat, " +
		"CASE WHEN d.goneat IS NULL AND d.previousat IS NOT NULL THEN d.changedat END, d.uid IS NOT NULL " +
		"FROM objects o LEFT JOIN definitions d ON d.clusteruid = o.clusteruid AND d.uid = o.uid WHERE o.type = ? AND o.id = ? "
	presentQuery = objectColumns + "AND o.goneat IS NULL AND o.key > ? ORDER BY o.key LIMIT ?"
	deletedQuery = objectColumns + "AND (o.goneat, o.key) < (?, ?) ORDER BY o.goneat DESC, o.key DESC LIMIT ?"
)

// Tree reads the objects of a workload in chunks, because a tree may be far larger than a page. The existing objects come first,
// then a limited number of deleted ones, newest first. No statement is open between two calls of Next. An object that is deleted
// meanwhile may be returned twice. It is not safe for concurrent use.
type Tree struct {
	Workload threeport.Workload
	Silences []threeport.Silence

	store       *Store
	chunk       int64 // maximum rows of the next chunk
	presentRead bool
	lastKey     string // of the object before the next chunk
	lastGone    int64  // its time of deletion
	deletedLeft int64  // deleted objects to read
}

// Workload begins to read a workload with its tree. It returns [ErrNotFound] if the workload does not exist.
func (s *Store) Workload(ctx context.Context, instance threeport.Instance) (*Tree, error) {
	row, err := s.workloadRow(ctx, instance)
	if err != nil {
		return nil, err
	}
	silences, err := s.silences(ctx, instance)
	if err != nil {
		return nil, fmt.Errorf("read silences of workload: %w", err)
	}
	return &Tree{Workload: row.Workload, Silences: silences, store: s, chunk: maxChunkRows, lastGone: math.MaxInt64, deletedLeft: maxDeletedObjects}, nil
}

// Next returns the next chunk of objects, as large as a page at most, and no objects at the end.
func (t *Tree) Next(ctx context.Context) ([]threeport.Object, error) {
	if !t.presentRead {
		objects, ended, err := t.read(ctx, presentQuery, t.chunk, t.lastKey)
		if err != nil {
			return nil, fmt.Errorf("list objects of workload: %w", err)
		}
		if t.presentRead = ended; ended {
			t.lastKey = ""
		}
		if len(objects) > 0 {
			return objects, nil
		}
	}
	if t.deletedLeft == 0 {
		return nil, nil
	}
	objects, ended, err := t.read(ctx, deletedQuery, min(t.chunk, t.deletedLeft), t.lastGone, t.lastKey)
	if err != nil {
		return nil, fmt.Errorf("list deleted objects of workload: %w", err)
	}
	if t.deletedLeft -= int64(len(objects)); ended {
		t.deletedLeft = 0
	}
	return objects, nil
}

// read returns up to limit objects after a position, and whether none follow.
func (t *Tree) read(ctx context.Context, query string, limit int64, position ...any) (objects []threeport.Object, ended bool, err error) {
	args := append([]any{t.Workload.Type, int64(t.Workload.ID)}, append(position, limit)...)
	_, full, err := collectPage(ctx, t.store.read, query, args, func(scan scanner) (size int, err error) {
		object, key, err := scanObject(scan)
		if err != nil {
			return 0, err
		}
		objects = append(objects, object)
		t.lastKey = key
		if object.Gone != nil {
			t.lastGone = microsOf(*object.Gone)
		}
		return objectBytes(object), nil
	}, func(size int) int { return size })
	read := int64(len(objects))
	t.chunk = nextChunk(t.chunk, read, full)
	return objects, !full && read < limit, err
}

// objectBytes is about the size of an object in an answer.
func objectBytes(o threeport.Object) int {
	const others = 512 // the names of the fields, and the values with small limits
	size := others + jsonBytes(o.Object.Name, o.Owner, o.Reason, o.Cause)
	if o.Pod == nil {
		return size
	}
	for _, c := range o.Pod.Containers {
		size += others + jsonBytes(c.Name, c.Image)
	}
	return size + jsonBytes(o.Pod.Node)
}

// workloadRow returns the row of a workload, or [ErrNotFound] if it does not exist or is deleted.
func (s *Store) workloadRow(ctx context.Context, instance threeport.Instance) (*workloadRow, error) {
	row, err := first(ctx, s.reserved, workloadQuery, []any{instance.Type, int64(instance.ID)}, scanWorkload)
	if err != nil {
		return nil, fmt.Errorf("read workload: %w", err)
	}
	if row.deleted {
		return nil, fmt.Errorf("read workload: %w", ErrNotFound)
	}
	return row, nil
}

func scanObject(scan scanner) (object threeport.Object, key string, err error) {
	var (
		resource, since                   int64
		goneAt, created, changed, deleted sql.NullInt64
		ref                               = &object.Object
		pod                               string
	)
	err = scan(&key, &ref.Group, &ref.Version, &ref.Kind, &ref.Namespace, &ref.Name, &ref.UID, &object.Owner, &object.Listed, &resource,
		&object.State, &object.Health, &object.Reason, &object.Cause, &pod, &since, &goneAt, &created, &deleted, &changed, &object.Defined)
	object.ResourceInstanceID = threeport.ID(resource)
	object.Since, object.Gone = optionalTime(nonZeroTime(since)), optionalTime(goneAt)
	object.Created, object.SpecChanged, object.Deleted = optionalTime(created), optionalTime(changed), optionalTime(deleted)
	if err == nil && pod != "" {
		err = json.Unmarshal([]byte(pod), &object.Pod)
	}
	return object, key, err
}

const definitionSizeQuery = "SELECT COALESCE(octet_length(current), 0) + COALESCE(octet_length(previous), 0) FROM definitions WHERE clusteruid = ? AND uid = ?"

// DefinitionSize returns the size of both versions of a definition, in bytes, or [ErrNotFound] if there is none.
func (s *Store) DefinitionSize(ctx context.Context, clusterUID, uid string) (int64, error) {
	if !storable(clusterUID, uid) {
		return 0, fmt.Errorf("read definition: %w", ErrNotFound)
	}
	size, err := first(ctx, s.read, definitionSizeQuery, []any{clusterUID, uid}, number)
	if err != nil {
		return 0, fmt.Errorf("read size of definition: %w", err)
	}
	return size, nil
}

const definitionQuery = "SELECT type, id, apigroup, apiversion, kind, namespace, name, uid, operation, version, at, changedat, previousat, current, previous " +
	"FROM definitions WHERE clusteruid = ? AND uid = ?"

// Definition returns the last reported definition of an object, or [ErrNotFound] if there is none. Earlier releases stored previous
// definitions that differ in the status only. They are not returned.
func (s *Store) Definition(ctx context.Context, clusterUID, uid string) (threeport.Definition, error) {
	if !storable(clusterUID, uid) {
		return threeport.Definition{}, fmt.Errorf("read definition: %w", ErrNotFound)
	}
	definition, err := first(ctx, s.read, definitionQuery, []any{clusterUID, uid}, scanDefinition)
	if err != nil {
		return definition, fmt.Errorf("read definition: %w", err)
	}
	return definition, nil
}

func scanDefinition(scan scanner) (threeport.Definition, error) {
	var (
		d                 threeport.Definition
		id, version, at   int64
		changedAt         sql.NullInt64
		previousAt        sql.NullInt64
		current, previous sql.NullString
	)
	err := scan(&d.Instance.Type, &id, &d.Object.Group, &d.Object.Version, &d.Object.Kind, &d.Object.Namespace, &d.Object.Name, &d.Object.UID,
		&d.Operation, &version, &at, &changedAt, &previousAt, &current, &previous)
	d.Instance.ID, d.Version = threeport.ID(id), threeport.ID(version)
	d.At, d.ChangedAt, d.Current = fromMicros(at), optionalTime(changedAt), document(current)
	if !current.Valid || specDigest(current.String) != specDigest(previous.String) {
		d.PreviousAt, d.Previous = optionalTime(previousAt), document(previous)
	}
	return d, err
}

// document converts stored JSON; nil for none.
func document(stored sql.NullString) json.RawMessage {
	if stored.String == "" {
		return nil
	}
	return json.RawMessage(stored.String)
}
