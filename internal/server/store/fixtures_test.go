package store

import (
	"context"
	"testing"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

// forEachDatabase runs a test on an empty store in SQLite, and in PostgreSQL if that is installed.
func forEachDatabase(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	databases.ForEachPrepared(t, migrated, func(t *testing.T, address string) {
		t.Helper()
		test(t, open(t, Config{Address: address}))
	})
}

// onPostgres runs a test on an empty store in PostgreSQL, if that is installed.
func onPostgres(t *testing.T, config Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	databases.OnPostgres(t, func(t *testing.T, address string) {
		t.Helper()
		config.Address = address
		test(t, open(t, config))
	})
}

// migrated creates the schema of a database.
func migrated(address string) error {
	s, err := Open(context.Background(), Config{Address: address})
	if err != nil {
		return err
	}
	return s.Close()
}

// open opens a store and closes it at the end of the test.
func open(t *testing.T, config Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// resource returns the resource of an object type.
func resource(t *testing.T, object string) *Resource {
	t.Helper()
	for _, r := range Resources {
		if r.Object == object {
			return r
		}
	}
	t.Fatalf("there is no resource %s", object)
	return nil
}

// create creates a v0 row with values in the order of the resource's fields; missing values are nil.
func create(t *testing.T, s *Store, object string, values ...any) Row {
	t.Helper()
	r := resource(t, object)
	o, created, err := s.Create(t.Context(), r, append(values, make([]any, len(r.Fields)-len(values))...))
	if err != nil || !created {
		t.Fatalf("create %s: created %t, error %v", object, created, err)
	}
	return o
}

// rows returns all rows of an object type.
func rows(t *testing.T, s *Store, object string) []Row {
	t.Helper()
	all, _, err := list(t.Context(), s, resource(t, object), Selection{Page: 1, Size: -1})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// list returns all rows of a page, and the number of rows on all pages.
func list(ctx context.Context, s *Store, r *Resource, selection Selection) (all []Row, total int64, err error) {
	page, err := s.List(ctx, r, selection)
	if err != nil {
		return nil, 0, err
	}
	for {
		chunk, err := page.Next(ctx)
		if err != nil || len(chunk) == 0 {
			return all, page.Total, err
		}
		all = append(all, chunk...)
	}
}

// readRow reads one row of SQL into targets.
func readRow(t *testing.T, s *Store, sql string, args []any, targets ...any) {
	t.Helper()
	if err := s.read.QueryRowContext(t.Context(), s.dialect.rebind(sql), args...).Scan(targets...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
