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

// inTx runs f in a transaction for writing and commits it if f returns nil. It runs f again after a conflict with other
// transactions. So f may only change tx, and variables that it sets in each run.
//
// The end of ctx does not cancel it, so that the outcome is definite: the context of f ends only with
// Config.WriteTimeout.
func (db *database) inTx(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return db.writing(ctx, func(ctx context.Context) error { return db.transact(ctx, f) })
}

// transact runs f once in a transaction.
func (db *database) transact(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit; otherwise f's error is returned
	if err := f(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	db.committed()
	return nil
}

// writing runs an atomic write and retries it after conflicts. The end of ctx does not cancel it. It does not retry
// after a lost connection: the commit may have happened.
func (db *database) writing(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.config.WriteTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := write(ctx)
		if !isConflict(err) || attempt == maxAttempts {
			return err
		}
		// A random delay keeps two transactions from conflicting again.
		if !sleep(ctx, rand.N(5*time.Millisecond<<attempt)) { //nolint:gosec // need not be secret
			return err
		}
	}
}

// exec runs one statement that writes.
func (db *database) exec(ctx context.Context, query string, args ...any) error {
	return db.writing(ctx, func(ctx context.Context) error {
		_, err := db.write.ExecContext(ctx, db.dialect.rebind(query), args...)
		return err
	})
}

// The limits of a maintenance transaction, so that it does not block other writers for long. SQLite writes a changed row whole, and
// keeps what a statement changes in memory.
const (
	maxRowsPerTx  = 500
	maxBytesPerTx = 4 << 20
)

// letOthersWrite waits after a maintenance transaction as long as it took. SQLite has one writer.
func letOthersWrite(ctx context.Context, begin time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Since(begin)):
		return nil
	}
}
