package main

import (
	"context"
	"fmt"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// The nodes that --node names.
const (
	nodeFake = "fake" // kwok plays them: no container runs
	nodeReal = "real" // one that runs containers, beside fake ones
)

// fakes is the number of fake nodes, beside a real one too.
const fakes = 3

// mode is what follows from where pods run. All else is the same, and so is what is expected.
type mode struct {
	nodes  string // in words
	real   bool
	access func(clusterDir string) (access, error)
	agent  func() agent
	// images makes the images of the workloads known to the nodes.
	images func(context.Context, *stack) error
	// hints are arguments of kubectl that show what there is to see in this mode only.
	hints []string
}

// fakeNodes is the mode that needs nothing of the machine: since no container runs, the agent is a process of ours.
func fakeNodes() mode {
	return mode{
		nodes:  fmt.Sprintf("%d fake nodes", fakes),
		access: openAccess,
		agent:  func() agent { return &agentProcess{} },
		images: func(context.Context, *stack) error { return nil },
	}
}

// realNode is the mode in which containers run: those of the workloads, and the agent's.
func realNode() mode {
	return mode{
		nodes:  fmt.Sprintf("a real node and %d fake nodes", fakes),
		real:   true,
		access: mutualAccess,
		agent:  func() agent { return &agentDeployment{} },
		images: loadBehave,
		hints:  []string{"get pods -A -o wide", "-n " + namespace + " logs deployment/crash"},
	}
}

// realNodeOr is the mode with a real node, unless there is an obstacle to that: then it is another, and the user is
// told why, and what to do about it.
func realNodeOr(other mode, obstacle error, say func(format string, args ...any)) mode {
	if obstacle == nil {
		return realNode()
	}
	say("This machine cannot run a real node, so the demo goes on with %s, on which no container runs.\n%v\n", other.nodes, obstacle)
	return other
}

func (m mode) options() cluster.Options { return cluster.Options{Nodes: fakes, RealNode: m.real} }

// loadBehave makes the image that the workloads' containers run known to the real node.
func loadBehave(ctx context.Context, s *stack) error {
	s.say("Building the image of the workloads (seconds).")
	return s.cluster.LoadBehave(ctx)
}
