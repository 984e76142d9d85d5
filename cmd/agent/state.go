package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

// openState locks the folder of --state-dir, and reads the state of an earlier process. Without a folder the journal is nil,
// which keeps nothing. An error names the flag and the remedy. Each replica has its own folder, even while it waits to lead.
func openState(dir string) (*journal.Journal, error) {
	j, err := journal.Open(dir, ctrl.Log.WithName("journal"))
	if err != nil {
		return nil, fmt.Errorf("--state-dir=%s: %w", dir, err)
	}
	return j, nil
}
