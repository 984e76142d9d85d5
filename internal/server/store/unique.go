package store

import (
	"context"
	"database/sql"
	"fmt"
)

// setUnique makes runtimeeventuid unique among the rows that are not deleted and have one, or not, as strictV0 says. It
// fails if it is to be unique and is not.
func (d dialect) setUnique(ctx context.Context, db *sql.DB, strictV0 bool) error {
	const index = "workload_events_runtimeeventuid"
	statements := []string{
		"CREATE UNIQUE INDEX IF NOT EXISTS " + index + " ON workload_events (runtimeeventuid) WHERE deletedat IS NULL AND runtimeeventuid <> ''",
		"DROP INDEX IF EXISTS " + index + "_v0",
	}
	if strictV0 {
		statements = []string{
			"CREATE INDEX IF NOT EXISTS " + index + "_v0 ON workload_events (runtimeeventuid, id)",
			"DROP INDEX IF EXISTS " + index,
		}
	}
	for _, statement := range statements {
		_, err := db.ExecContext(ctx, statement)
		if isUniqueViolation(err) {
			return fmt.Errorf("it has several WorkloadEvents of one RuntimeEventUID, as --strict-v0 lets them be made: "+
				"serve it with --strict-v0, and through v0 delete all but one of each before it is opened without: %w", err)
		}
		if err != nil {
			return fmt.Errorf("make runtimeeventuid unique, or not, as configured: %w", err)
		}
	}
	return nil
}
