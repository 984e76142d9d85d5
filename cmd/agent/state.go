package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

// openState locks the directory of --state-dir, and reads the state of the last process. Without a directory the journal is
// nil, and keeps nothing. An error names the flag and says what to do.
//
// Each replica has its own directory, and uses it while it waits to lead, too.
func openState(dir string) (*journal.Journal, error) {
	j, err := journal.Open(dir, ctrl.Log.WithName("journal"))
	if err != nil {
		return nil, fmt.Errorf("--state-dir=%s: %w", dir, err)
	}
	return j, nil
}
