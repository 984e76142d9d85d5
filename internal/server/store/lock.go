package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

// lock is an advisory lock of a task that runs in one replica at a time. All versions of the program must use the same
// numbers.
type lock int64

const (
	lockMigration lock = 0x7468_7265_6570_0001 + iota // "threep" and a number
	lockPruning
	lockLogExport
)

const unlockTimeout = 10 * time.Second

// tryLock takes an advisory lock and reports whether it was free. The lock ends with unlock, or with the process or its
// connection. SQLite has only one server, so its locks are always free.
func (db *database) tryLock(ctx context.Context, l lock) (unlock func() error, ok bool, err error) {
	if db.dialect == sqliteDialect {
		return func() error { return nil }, true, nil
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("take advisory lock: %w", err)
	}
	asking, cancel := db.reading(ctx)
	defer cancel()
	if err := conn.QueryRowContext(asking, "SELECT pg_try_advisory_lock($1)", int64(l)).Scan(&ok); err != nil || !ok {
		_ = conn.Close()
		if err != nil {
			return nil, false, fmt.Errorf("take advisory lock: %w", err)
		}
		return nil, false, nil
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(l))
		if err != nil { // the session holds the lock, so it must not return to the pool
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			return fmt.Errorf("release advisory lock: %w", err)
		}
		return conn.Close()
	}, true, nil
}
