package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

// openState takes the folder of --state-dir for this process, and reads what an earlier one left there. Without a
// folder the journal is nil, which keeps nothing. An error names the flag and what to do.
//
// Every replica takes its own folder, also one that waits to lead: what it keeps there is not for another.
func openState(dir string) (*journal.Journal, error) {
	j, err := journal.Open(dir, ctrl.Log.WithName("journal"))
	if err != nil {
		return nil, fmt.Errorf("--state-dir=%s: %w", dir, err)
	}
	return j, nil
}
