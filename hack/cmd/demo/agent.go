package main

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// agent is the agent, in one of the ways in which it runs.
type agent interface {
	// start installs it for a cluster and a control-plane API that run, and returns when it is ready.
	start(ctx context.Context, s *stack) error
	// log returns what it has logged. It is empty before start.
	log(ctx context.Context) (string, error)
	// process returns its process if that is ours to stop, and its death the demo's end. It is nil before start.
	process() *process.Process
	// commands show it at work.
	commands(kubectl string) []string
}
