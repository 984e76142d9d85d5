package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// resourceStatements are the prepared statements of one resource.
type resourceStatements struct {
	insert, update, remove *sql.Stmt // on Store.write
	find                   *sql.Stmt // on Store.reserved
	get                    *sql.Stmt // on Store.read
	byUnique               *sql.Stmt // on Store.write, nil without a unique field
}

// prepareResources prepares the statements, and the ID generator, which starts above the largest stored ID.
func (s *Store) prepareResources(ctx context.Context) error {
	s.statements = make(map[*Resource]*resourceStatements, len(Resources))
	for _, r := range Resources {
		var err error
		if s.statements[r], err = s.prepareResource(ctx, r); err != nil {
			return fmt.Errorf("prepare statements of %s: %w", r.table(), err)
		}
	}
	var newest int64
	for _, table := range []string{
		"workload_instances", "helm_workload_instances", "workload_resource_instances", "workload_events", "tokens", "audit_records",
	} {
		var top sql.NullInt64
		if err := s.read.QueryRowContext(ctx, "SELECT MAX(id) FROM "+table).Scan(&top); err != nil {
			return fmt.Errorf("read newest ID of %s: %w", table, err)
		}
		newest = max(newest, top.Int64)
	}
	s.ids = newIDs(newest)
	return nil
}

func (s *Store) prepareResource(ctx context.Context, r *Resource) (*resourceStatements, error) {
	sets := make([]string, 0, len(r.Fields))
	for _, f := range r.Fields {
		sets = append(sets, fmt.Sprintf("%s = COALESCE(?, %s)", f.Column(), f.bounded()))
	}
	sel := r.selectLive()
	var errs []error
	prepare := func(db *sql.DB, query string) *sql.Stmt {
		statement, err := db.PrepareContext(ctx, s.dialect.rebind(query))
		errs = append(errs, err)
		return statement
	}
	prepared := &resourceStatements{
		insert: prepare(s.write, fmt.Sprintf("INSERT INTO %s (%s) VALUES (?, ?, ?, NULL%s) ON CONFLICT DO NOTHING",
			r.table(), r.columns(), strings.Repeat(", ?", len(r.Fields)))),
		// nil leaves a field unchanged.
		update: prepare(s.write, fmt.Sprintf("UPDATE %s SET updatedat = ?, %s WHERE id = ? AND deletedat IS NULL RETURNING %s",
			r.table(), strings.Join(sets, ", "), r.boundedColumns())),
		remove: prepare(s.write, fmt.Sprintf("UPDATE %s SET deletedat = ? WHERE id = ? AND deletedat IS NULL RETURNING %s",
			r.table(), r.boundedColumns())),
		find: prepare(s.reserved.DB, "SELECT "+r.referenceColumns()+" FROM "+r.table()+" WHERE deletedat IS NULL AND id = ?"),
		get:  prepare(s.read.DB, sel+"id = ?"),
	}
	if i, ok := s.unique(r); ok {
		prepared.byUnique = prepare(s.write, r.selectUnique(i))
	}
	return prepared, errors.Join(errs...)
}

// selectLive is a query of the rows that are not deleted, without its last condition.
func (r *Resource) selectLive() string {
	return "SELECT " + r.boundedColumns() + " FROM " + r.table() + " WHERE deletedat IS NULL AND "
}

// selectUnique is a query for the row of an owner with a value in the unique field with this index.
func (r *Resource) selectUnique(field int) string {
	return r.selectLive() + r.Fields[field].hasUnique() + " AND " + eventOwnerSQL("") + " = ?"
}

// unique is the field that identifies a row of an owner besides its ID; ok is false if there is none.
func (s *Store) unique(r *Resource) (index int, ok bool) {
	if s.config.StrictV0 {
		return 0, false
	}
	return r.unique()
}

// Create inserts a row. If the owner has a row with the same unique value, it returns that row and created is false. The error
// is a [FieldError], [ErrReference] or [ErrRefused].
func (s *Store) Create(ctx context.Context, r *Resource, values []any) (o Row, created bool, err error) {
	return s.CreateFor(ctx, r, values, "", nil)
}

// CreateFor is Create, and assigns a new instance to a cluster. An empty UID leaves it without a cluster. The claim is nil for none. It
// has no effect if the row existed.
func (s *Store) CreateFor(ctx context.Context, r *Resource, values []any, clusterUID string, claim *Claim) (o Row, created bool, err error) {
	if err := r.checkValues(values); err != nil {
		return Row{}, false, err
	}
	for {
		o, created, err = s.insert(ctx, r, values, clusterUID, claim)
		if created {
			s.eventGrowth.add(s.eventsByWorkload(r, values))
		}
		if created || err != nil {
			return o, created, writeError(err)
		}
		i, ok := s.unique(r)
		if !ok {
			continue // another process used the same ID
		}
		o, err = s.getByUnique(ctx, r, values[i], r.eventOwner(values))
		if !errors.Is(err, sql.ErrNoRows) { // deleted meanwhile: the value is free again
			return o, false, err
		}
	}
}

// getByUnique returns the row of an owner with a unique value, or [sql.ErrNoRows].
func (s *Store) getByUnique(ctx context.Context, r *Resource, value any, owner int64) (Row, error) {
	ctx, cancel := s.reading(context.WithoutCancel(ctx))
	defer cancel()
	return r.scan(s.statements[r].byUnique.QueryRowContext(ctx, value, owner).Scan)
}

// errRowExists ends the transaction of a row whose ID or unique value exists.
var errRowExists = errors.New("the row exists")

// insert inserts a row unless its ID or unique value exists.
func (s *Store) insert(ctx context.Context, r *Resource, values []any, clusterUID string, claim *Claim) (o Row, inserted bool, err error) {
	err = s.writeResource(ctx, r, claim, func(ctx context.Context, tx *sql.Tx) error {
		at := now()
		o = Row{ID: s.ids.next(), CreatedAt: at, UpdatedAt: at, Values: values}
		result, err := s.stmtIn(ctx, tx, s.statements[r].insert).ExecContext(ctx, append([]any{o.ID, at, at}, values...)...)
		if err != nil {
			return err
		}
		switch n, err := result.RowsAffected(); {
		case err != nil:
			return err
		case n == 0:
			return errRowExists
		case !r.isWorkload:
			return nil
		}
		return s.insertWorkload(ctx, tx, r, o, clusterUID)
	})
	if errors.Is(err, errRowExists) {
		if claim != nil {
			claim.Claimed = nil // the transaction has no effect
		}
		return o, false, nil
	}
	return o, err == nil, err
}

// Found is a row without its texts and documents.
type Found struct {
	Row
	// Size is the number of bytes of its texts and documents.
	Size int64
}

// Find returns the references of a row that is not deleted, or [ErrNotFound]. It is quick for a row of any size.
func (s *Store) Find(ctx context.Context, r *Resource, id int64) (found Found, err error) {
	ctx, cancel := s.reading(ctx)
	defer cancel()
	found.Row, err = orNotFound(r.scan(func(targets ...any) error {
		return s.statements[r].find.QueryRowContext(ctx, id).Scan(append(targets, &found.Size)...)
	}))
	return found, err
}

// Get returns a row that is not deleted, or [ErrNotFound].
func (s *Store) Get(ctx context.Context, r *Resource, id int64) (Row, error) {
	ctx, cancel := s.reading(ctx)
	defer cancel()
	return orNotFound(r.scan(s.statements[r].get.QueryRowContext(ctx, id).Scan))
}

// Update sets the values that are not nil, and returns the new row. The error is [ErrNotFound], [ErrConflict] or one of
// those of Create.
func (s *Store) Update(ctx context.Context, r *Resource, id int64, values []any) (o Row, err error) {
	return s.UpdateFor(ctx, r, id, values, nil)
}

// UpdateFor is Update with a claim; nil for none.
func (s *Store) UpdateFor(ctx context.Context, r *Resource, id int64, values []any, claim *Claim) (o Row, err error) {
	if err := r.checkValues(values); err != nil {
		return Row{}, err
	}
	err = s.writeResource(ctx, r, claim, func(ctx context.Context, tx *sql.Tx) error {
		args := append(append([]any{now()}, values...), id)
		o, err = orNotFound(r.scan(s.stmtIn(ctx, tx, s.statements[r].update).QueryRowContext(ctx, args...).Scan))
		if err != nil || !r.isWorkload {
			return err
		}
		return s.updateWorkload(ctx, tx, r, o, values)
	})
	if err == nil { // the Event may have been of another workload, or short
		s.eventGrowth.add(s.eventsByWorkload(r, o.Values))
	}
	return o, writeError(err)
}

// Remove marks a row as deleted and returns it, or [ErrNotFound]. Rows that refer to it stay.
func (s *Store) Remove(ctx context.Context, r *Resource, id int64) (o Row, err error) {
	err = s.writeResource(ctx, r, nil, func(ctx context.Context, tx *sql.Tx) error {
		o, err = orNotFound(r.scan(s.stmtIn(ctx, tx, s.statements[r].remove).QueryRowContext(ctx, now(), id).Scan))
		if err != nil || !r.isWorkload {
			return err
		}
		return s.deleteWorkload(ctx, tx, r, o)
	})
	return o, err
}

// writeResource runs a write: in a transaction for an instance, whose workloads row changes with it, and after a claim; otherwise as a
// single statement, with a nil tx.
func (s *Store) writeResource(ctx context.Context, r *Resource, claim *Claim, write func(ctx context.Context, tx *sql.Tx) error) error {
	return s.writing(ctx, func(ctx context.Context) error {
		if !r.isWorkload && claim == nil {
			return write(ctx, nil)
		}
		return s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if claim != nil {
				if err := s.claimInTx(ctx, tx, claim); err != nil {
					return err
				}
			}
			return write(ctx, tx)
		})
	})
}

// stmtIn returns the prepared statement for use in tx, which may be nil.
func (s *Store) stmtIn(ctx context.Context, tx *sql.Tx, prepared *sql.Stmt) *sql.Stmt {
	if tx == nil {
		return prepared
	}
	return tx.StmtContext(ctx, prepared)
}

// orNotFound converts sql.ErrNoRows to ErrNotFound.
func orNotFound(o Row, err error) (Row, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return Row{}, ErrNotFound
	}
	return o, err
}
