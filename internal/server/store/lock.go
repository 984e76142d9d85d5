package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

// lock is a task that one replica at a time does. Its number is part of what replicas of different versions agree on.
type lock int64

const (
	lockMigration lock = 0x7468_7265_6570_0001 + iota // "threep", and a number
	lockPruning
)

const unlockTimeout = 10 * time.Second

// tryLock takes a lock that no other replica holds, and tells whether it could. Then unlock gives it back; if the
// process or its connection dies, the database does. SQLite has one process, so that the lock is always free.
func (s *Store) tryLock(ctx context.Context, l lock) (unlock func() error, ok bool, err error) {
	if s.dialect == sqliteDialect {
		return func() error { return nil }, true, nil
	}
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("take advisory lock: %w", err)
	}
	asking, cancel := s.reading(ctx)
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
		if err != nil { // the lock is the session's, so that this may not go back to the pool
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			return fmt.Errorf("give back advisory lock: %w", err)
		}
		return conn.Close()
	}, true, nil
}
