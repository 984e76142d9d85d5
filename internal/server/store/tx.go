package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"
)

// maxAttempts limits the tries of a write that conflicts with others.
const maxAttempts = 6

// inTx runs f in a transaction that writes, and commits it if f returns nil. f is run again, from the start, if the
// database gives the transaction up in favour of others; so it has no effects but those on tx and on what it sets anew
// each time.
//
// The end of ctx does not interrupt it, since a finished write has a definite outcome: f has a context that only the
// configured timeout ends, for all its statements.
func (s *Store) inTx(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return s.writing(ctx, func(ctx context.Context) error { return s.transact(ctx, f) })
}

// transact runs f in a transaction, once.
func (s *Store) transact(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // of no effect after the commit; else f's error says why
	if err := f(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.signalChange()
	return nil
}

// writing runs a write that is atomic, again if it conflicts with others, and without being interrupted by the end of
// ctx. A lost connection is not tried again: whether it came before or after the commit is not to be known.
func (s *Store) writing(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.WriteTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := write(ctx)
		if !isConflict(err) || attempt == maxAttempts {
			return err
		}
		// A random delay keeps two transactions from conflicting again.
		if !sleep(ctx, rand.N(5*time.Millisecond<<attempt)) { //nolint:gosec // no secret
			return err
		}
	}
}

// exec runs one statement that writes.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return s.writing(ctx, func(ctx context.Context) error {
		_, err := s.write.ExecContext(ctx, s.dialect.rebind(query), args...)
		return err
	})
}

// stepRows is how many rows a transaction of the maintenance changes at most, so that nobody waits long for it.
const maxRowsPerTx = 500
