package main

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// agent is a running agent, as a process or a Deployment.
type agent interface {
	// start installs the agent for a running cluster and control-plane API, and waits until it is ready.
	start(ctx context.Context, s *stack) error
	// log returns the log; empty before start.
	log(ctx context.Context) (string, error)
	// process returns the process if the demo has to stop it; nil before start.
	process() *process.Process
	// restartCommand is the command that starts the process again; empty without a process.
	restartCommand() string
	// commands are commands for the user that show the agent at work.
	commands(kubectl string) []string
}
