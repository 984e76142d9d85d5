package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// countClusters counts the clusters, which these tests use as markers.
func countClusters(t *testing.T, s *Store) (n int) {
	t.Helper()
	readRow(t, s, "SELECT COUNT(*) FROM clusters", nil, &n)
	return n
}

func insertCluster(ctx context.Context, s *Store, tx *sql.Tx, uid string) error {
	_, err := tx.ExecContext(ctx, s.dialect.rebind("INSERT INTO clusters (uid, heardat, agenttime, changedat) VALUES (?, 0, 0, 0)"), uid)
	return err
}

func TestInTx_IsAtomic(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		wrong := errors.New("wrong")
		err := s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			if err := insertCluster(ctx, s, tx, "a"); err != nil {
				return err
			}
			return wrong
		})
		if n := countClusters(t, s); !errors.Is(err, wrong) || n != 0 {
			t.Errorf("after a failure: %v, %d rows, want %v and 0", err, n, wrong)
		}
		err = s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(insertCluster(ctx, s, tx, "a"), insertCluster(ctx, s, tx, "b"))
		})
		if n := countClusters(t, s); err != nil || n != 2 {
			t.Errorf("after a success: %v, %d rows, want no error and 2", err, n)
		}
	})
}

func TestInTx_Conflict_IsRetried(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		conflict := fmt.Errorf("write: %w", &pgconn.PgError{Code: pgSerializationFailure})
		for _, c := range []struct {
			reason    string
			conflicts int
			attempts  int
			rows      int
		}{
			{reason: "none", attempts: 1, rows: 1},
			{reason: "some", conflicts: 2, attempts: 3, rows: 2},
			{reason: "one less than the maximum", conflicts: maxAttempts - 1, attempts: maxAttempts, rows: 3},
			{reason: "at each attempt", conflicts: maxAttempts + 5, attempts: maxAttempts, rows: 3},
		} {
			tried := 0
			err := s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				tried++
				if err := insertCluster(ctx, s, tx, c.reason); err != nil {
					return err // the row of an earlier attempt still exists
				}
				if tried <= c.conflicts {
					return conflict
				}
				return nil
			})
			if failed := err != nil; failed != (c.conflicts >= maxAttempts) || tried != c.attempts || countClusters(t, s) != c.rows {
				t.Errorf("conflicts %s: %v after %d attempts, %d rows, want %d and %d", c.reason, err, tried, countClusters(t, s), c.attempts, c.rows)
			}
		}
	})
}

func TestInTx_Timeout_IsIndependentOfRequest(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.inTx(ended, func(ctx context.Context, tx *sql.Tx) error { return insertCluster(ctx, s, tx, "a") }); err != nil {
			t.Errorf("a write whose request has ended: %v", err)
		}
		s.config.WriteTimeout = 20 * time.Millisecond
		err := s.inTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || !IsTransient(err) {
			t.Errorf("a write that hangs: %v, want %v", err, context.DeadlineExceeded)
		}
		s.config.WriteTimeout = DefaultWriteTimeout
		if err := s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return insertCluster(ctx, s, tx, "b") }); err != nil {
			t.Errorf("a write after the timeout: %v", err)
		}
	})
}

// Each transaction locks the row that the other one needs next.
func TestInTx_Deadlock_IsRetried(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, uid := range []string{"a", "b"} {
			if err := s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return insertCluster(ctx, s, tx, uid) }); err != nil {
				t.Fatal(err)
			}
		}
		var both, group sync.WaitGroup
		if s.dialect == postgresDialect { // SQLite admits one writer at a time
			both.Add(2)
		}
		add := func(ctx context.Context, tx *sql.Tx, uid string) error {
			_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE clusters SET pending = pending + 1 WHERE uid = ?"), uid)
			return err
		}
		for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			group.Go(func() {
				var arrive sync.Once
				err := s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
					if err := add(ctx, tx, order[0]); err != nil {
						return err
					}
					if s.dialect == postgresDialect {
						arrive.Do(func() { both.Done(); both.Wait() })
					}
					return add(ctx, tx, order[1])
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		var sum int
		readRow(t, s, "SELECT SUM(pending) FROM clusters", nil, &sum)
		if sum != 4 {
			t.Errorf("two transactions with two changes each resulted in %d, want 4", sum)
		}
	})
}

// A reader of the workload list does not wait behind queued reports.
func TestReads_AllWriteConnectionsBusy_DoNotWait(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for range s.write.Stats().MaxOpenConnections {
			tx, err := s.write.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if _, err := s.Workloads(ctx, WorkloadQuery{}); err != nil {
			t.Errorf("a read while all connections for writing are busy: %v", err)
		}
	})
}
