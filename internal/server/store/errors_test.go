package store

import (
	"strings"
	"testing"
)

// The code of a rejection names the rule and not the data.
func TestRejectionCode(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		_, err := s.write.ExecContext(t.Context(), "INSERT INTO workload_events (id, runtimeeventuid) VALUES (1, 'hunter2'), (1, 'hunter2')")
		if !isRejectedData(err) {
			t.Fatalf("the error %v is no rejection", err)
		}
		code := rejectionCode(err)
		if !strings.HasPrefix(code, "SQLSTATE 23") && !strings.HasPrefix(code, "result code 1") || strings.Contains(code, "hunter2") {
			t.Errorf("the code of %v is %q, want that of a violated constraint", err, code)
		}
	})
}
