package store

import (
	"database/sql"
	_ "embed"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

//go:embed testdata/unversioned.sql
var unversionedDump string

// unversioned creates a file with the schema from before versions, runs statements on it, and reads its rows by table.
func unversioned(t *testing.T, statements ...string) (address string, rows map[string][]Row) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rows.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // everything is written
	for _, statement := range append([]string{unversionedDump}, statements...) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows = make(map[string][]Row)
	for _, r := range Resources {
		rows[r.table()] = unversionedRows(t, db, r)
	}
	return "sqlite:" + file, rows
}

// unversionedRows reads a table whose times are RFC 3339 texts.
func unversionedRows(t *testing.T, db *sql.DB, r *Resource) (all []Row) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), "SELECT "+r.columns()+" FROM "+r.table()+" ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close() //nolint:errcheck // Err reports the same error
	for found.Next() {
		values := make([]any, 4+len(r.Fields))
		targets := make([]any, len(values))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := found.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		o := Row{ID: values[0].(int64), CreatedAt: *storedMicros(t, values[1]), UpdatedAt: *storedMicros(t, values[2]), DeletedAt: storedMicros(t, values[3])}
		for i, f := range r.Fields {
			value := values[4+i]
			switch {
			case value == nil:
			case f.Kind == Timestamp:
				value = *storedMicros(t, value)
			case f.Kind == Boolean:
				value = value.(int64) != 0
			}
			o.Values = append(o.Values, value)
		}
		all = append(all, o)
	}
	if err := found.Err(); err != nil || len(all) == 0 {
		t.Fatalf("the test data have %d rows of %s, error %v", len(all), r.table(), err)
	}
	return all
}

func storedMicros(t *testing.T, value any) *int64 {
	t.Helper()
	if value == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, value.(string))
	if err != nil {
		t.Fatal(err)
	}
	return new(at.UnixMicro())
}

func TestOpen_UnversionedFile_IsMigrated(t *testing.T) {
	const index = "workload_events_runtimeeventuid"
	for reason, made := range map[string]struct {
		strict     bool
		statements []string
	}{
		"by default": {},
		"strictly": {true, []string{
			"DROP INDEX " + index, "CREATE INDEX " + index + "_v0 ON workload_events (runtimeeventuid, id)",
		}},
	} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("made %s, opened with strict %t", reason, strict), func(t *testing.T) {
				address, want := unversioned(t, made.statements...)
				s := open(t, Config{Address: address, StrictV0: strict})
				for _, r := range Resources {
					checkRows(t, s, r, want[r.table()])
				}
				checkReferences(t, s)
				checkUnique(t, s, !strict)
			})
		}
	}
}

// checkRows compares all rows of the table, and the rows that v0 lists.
func checkRows(t *testing.T, s *Store, r *Resource, want []Row) {
	t.Helper()
	var live, all []Row
	for _, o := range want {
		got, err := r.scan(s.read.QueryRowContext(t.Context(), "SELECT "+r.columns()+" FROM "+r.table()+" WHERE id = ?", o.ID).Scan)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got)
		if o.DeletedAt == nil {
			live = append(live, o)
		}
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%s has %+v, want %+v", r.table(), all, want)
	}
	if got := rows(t, s, r.Object); !reflect.DeepEqual(got, live) {
		t.Errorf("%s lists %+v, want %+v", r.table(), got, live)
	}
}

// checkReferences checks that foreign keys hold and are enforced.
func checkReferences(t *testing.T, s *Store) {
	t.Helper()
	var broken int
	readRow(t, s, "SELECT COUNT(*) FROM pragma_foreign_key_check", nil, &broken)
	if broken != 0 {
		t.Errorf("%d dangling references, want 0", broken)
	}
	orphan := eventValues("orphan")
	orphan[6] = int64(1)
	if _, created, err := s.Create(t.Context(), resource(t, "WorkloadEvent"), orphan); created || !isForeignKey(err) {
		t.Errorf("creating an Event of an unknown resource instance: created %t, error %v; want a foreign key violation", created, err)
	}
}

// checkUnique checks whether an Event with an existing UID creates a second row. One of another instance always does.
func checkUnique(t *testing.T, s *Store, unique bool) {
	t.Helper()
	r, values := resource(t, "WorkloadEvent"), rows(t, s, "WorkloadEvent")[0].Values
	if _, created, err := s.Create(t.Context(), r, values); err != nil || created == unique {
		t.Errorf("creating an Event with an existing UID: created %t, error %v", created, err)
	}
	values[5], values[6] = create(t, s, workload, "other").ID, nil
	if _, created, err := s.Create(t.Context(), r, values); err != nil || !created {
		t.Errorf("creating an Event of another instance with an existing UID: created %t, error %v", created, err)
	}
}

func TestOpen_UnversionedFile_CreatesWorkloads(t *testing.T) {
	address, _ := unversioned(t)
	s := open(t, Config{Address: address})
	for name, want := range map[string]string{
		"web": "WorkloadInstance Healthy Healthy 5 false", "wëb 2": "WorkloadInstance  Unknown 3 false",
		"gone": "WorkloadInstance Down Down 0 true", "odd": "WorkloadInstance Sideways Unknown 3 false",
		"chart": "HelmWorkloadInstance Unhealthy Unhealthy 2 false", "old chart": "HelmWorkloadInstance  Unknown 3 true",
	} {
		var kind, said, status string
		var rank int
		var deleted bool
		readRow(t, s, "SELECT type, said, status, rank, deletedat IS NOT NULL FROM workloads WHERE name = ?", []any{name},
			&kind, &said, &status, &rank, &deleted)
		if got := fmt.Sprint(kind, " ", said, " ", status, " ", rank, " ", deleted); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if shownStatus, shownRank := displayedStatus(said); status != shownStatus || rank != shownRank {
			t.Errorf("%s: the migration shows %s of rank %d, the program %s of %d", name, status, rank, shownStatus, shownRank)
		}
	}
}

func TestOpen_NewerSchema_IsRefused(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		s, err := Open(t.Context(), Config{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.write.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err = Open(t.Context(), Config{Address: address})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "version 999") || !strings.Contains(err.Error(), "newer program") {
			t.Errorf("opening a newer schema returned %v", err)
		}
	})
}

func TestOpen_Concurrently_MigratesOnce(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		// One process migrates while the others wait, for at most 5 s in SQLite.
		const processes = 6
		var group sync.WaitGroup
		for range processes {
			group.Go(func() {
				s, err := Open(t.Context(), Config{Address: address})
				if err != nil {
					t.Error(err)
					return
				}
				_, _, err = s.Create(t.Context(), resource(t, "WorkloadInstance"), []any{"web", nil, nil})
				if closeErr := s.Close(); err != nil || closeErr != nil {
					t.Error(err, closeErr)
				}
			})
		}
		group.Wait()
		if all := rows(t, open(t, Config{Address: address}), "WorkloadInstance"); len(all) != processes {
			t.Errorf("the table has %d rows of %d processes", len(all), processes)
		}
	})
}

// Both processes read the schema version before either writes.
func TestOpen_TwoProcessesMigrateOneFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.db")
	holder, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close() //nolint:errcheck // everything is written
	for _, statement := range []string{
		"CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1)",
	} {
		if _, err := holder.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	held, err := holder.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			s, err := Open(t.Context(), Config{Address: "sqlite:" + file})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	<-time.After(300 * time.Millisecond) // if they do not exist yet, the test is only weaker
	if err := held.Rollback(); err != nil {
		t.Error(err)
	}
	group.Wait()
}

// SQL for one database must fit the schema of the other.
func TestMigrations_BothDialects_HaveEqualSchemas(t *testing.T) {
	described := make(map[dialect][]string)
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		queries := []string{
			`SELECT m.name || '.' || c.name || CASE WHEN c.hidden <> 0 THEN ' generated' WHEN c."notnull" THEN ' not null' ELSE '' END
			FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
			"SELECT 'index ' || name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%'",
		}
		if s.dialect == postgresDialect {
			queries = []string{
				`SELECT table_name || '.' || column_name || CASE WHEN is_generated = 'ALWAYS' THEN ' generated' WHEN is_nullable = 'NO' THEN ' not null' ELSE '' END
				FROM information_schema.columns WHERE table_schema = 'public'`,
				`SELECT 'index ' || indexname FROM pg_indexes WHERE schemaname = 'public'
				AND indexname NOT LIKE '%_pkey' AND indexname NOT LIKE '%_key'`,
			}
		}
		for _, query := range queries {
			described[s.dialect] = append(described[s.dialect], lines(t, s, query)...)
		}
	})
	postgres, both := described[postgresDialect]
	if !both {
		return // forEachDatabase has logged why
	}
	// Skip tables of others, and an index of an extension that the database may lack.
	own := func(line string) bool {
		return strings.HasPrefix(line, "goose_db_version") || line == "index workloads_search"
	}
	lite := slices.DeleteFunc(described[sqliteDialect], own)
	postgres = slices.DeleteFunc(postgres, own)
	slices.Sort(lite)
	slices.Sort(postgres)
	if len(lite) < 50 {
		t.Errorf("the schema has only %d lines, want 50 or more", len(lite))
	}
	for _, line := range lite {
		if !slices.Contains(postgres, line) {
			t.Errorf("only SQLite has the line %s", line)
		}
	}
	for _, line := range postgres {
		if !slices.Contains(lite, line) {
			t.Errorf("only PostgreSQL has the line %s", line)
		}
	}
}

// lines returns the rows of a query for text.
func lines(t *testing.T, s *Store, query string) (all []string) {
	t.Helper()
	found, err := s.read.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close() //nolint:errcheck // Err reports the same error
	for found.Next() {
		var line string
		if err := found.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
