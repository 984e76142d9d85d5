package store

import "context"

// optimizeTables has SQLite count again what is in the tables that were never counted, or are ten times as large or as small
// as they were then: https://www.sqlite.org/pragma.html#pragma_optimize. The bits: do it (0x2), for tables that this
// connection has not read as well (0x10000), and of each index look at a part only (0x10). With a million Events that holds
// up other writers for 0.25 s, and all of them would for 5.5 s; it takes less than 1 ms if there is nothing to do.
const optimizeTables = "PRAGMA optimize = 0x10012"

// optimize lets SQLite choose plans by what the tables hold; else it guesses. PostgreSQL's autovacuum does so by itself.
// Connections that are open already go by what was counted when they were opened: see readerLifetime.
func (s *Store) optimize(ctx context.Context) error {
	if s.dialect != sqliteDialect {
		return nil
	}
	return s.exec(ctx, optimizeTables)
}
