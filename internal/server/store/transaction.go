package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"
)

// attempts bounds how often a write is tried.
const attempts = 6

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
	s.touched()
	return nil
}

// writing runs a write that is atomic, again if it conflicts with others, and without being interrupted by the end of
// ctx. A lost connection is not tried again: whether it came before or after the commit is not to be known.
func (s *Store) writing(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.WriteTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := write(ctx)
		if !isConflict(err) || attempt == attempts || !pause(ctx, attempt) {
			return err
		}
	}
}

// pause waits before the next attempt, a random time so that two that conflict do not meet again, and tells whether
// ctx lets it go on.
func pause(ctx context.Context, attempt int) bool {
	longest := 5 * time.Millisecond << attempt
	timer := time.NewTimer(rand.N(longest)) //nolint:gosec // distinct, not secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// exec runs one statement that writes.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return s.writing(ctx, func(ctx context.Context) error {
		_, err := s.write.ExecContext(ctx, s.dialect.rebind(query), args...)
		return err
	})
}
