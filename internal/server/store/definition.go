package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const definitionQuery = "SELECT type, id, apigroup, apiversion, kind, namespace, name, uid, operation, version, at, previousat, current, previous " +
	"FROM definitions WHERE clusteruid = ? AND uid = ?"

// Definition returns an object as its cluster has it; [ErrNotFound] if that was never told, or is forgotten.
func (s *Store) Definition(ctx context.Context, clusterUID, uid string) (threeport.Definition, error) {
	if !storable(clusterUID, uid) {
		return threeport.Definition{}, fmt.Errorf("read definition: %w", ErrNotFound)
	}
	definition, err := first(ctx, s, definitionQuery, []any{clusterUID, uid}, scanDefinition)
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

// document is stored JSON; nil for none.
func document(stored sql.NullString) json.RawMessage {
	if stored.String == "" {
		return nil
	}
	return json.RawMessage(stored.String)
}
