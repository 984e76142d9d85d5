package main

import (
	"context"
	"fmt"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// The nodes that --node names.
const (
	nodeFake = "fake" // simulated by kwok: no container runs
	nodeReal = "real" // one that runs containers, beside fake ones
)

// fakeNodeCount is the number of fake nodes, also with a real one.
const fakeNodeCount = 3

// mode is the part of the demo that depends on the kind of nodes. The expectations do not.
type mode struct {
	nodes  string // a description
	real   bool
	access func(clusterDir string) (access, error)
	agent  func() agent
	// images loads the images of the workloads into the nodes.
	images func(context.Context, *stack) error
	// hints are additional kubectl commands of this mode.
	hints []string
}

// fakeNodes is the mode without requirements on the machine. No container runs, so the agent is a child process.
func fakeNodes() mode {
	return mode{
		nodes:  fmt.Sprintf("%d fake nodes", fakeNodeCount),
		access: openAccess,
		agent:  func() agent { return &agentProcess{} },
		images: func(context.Context, *stack) error { return nil },
	}
}

// realNode is the mode in which the containers of the workloads and of the agent run.
func realNode() mode {
	return mode{
		nodes:  fmt.Sprintf("a real node and %d fake nodes", fakeNodeCount),
		real:   true,
		access: mutualAccess,
		agent:  func() agent { return &agentDeployment{} },
		images: loadBehave,
		hints:  []string{"get pods -A -o wide", "-n " + namespace + " logs deployment/crash"},
	}
}

// realNodeOr returns the mode with a real node. If the machine does not support it, it returns another mode, and reports the
// reason and a hint to the user.
func realNodeOr(other mode, obstacle error, say func(format string, args ...any)) mode {
	if obstacle == nil {
		return realNode()
	}
	say("This machine cannot run a real node, so the demo continues with %s, which run no containers.\n%v\n", other.nodes, obstacle)
	return other
}

func (m mode) options() cluster.Options {
	return cluster.Options{Nodes: fakeNodeCount, RealNode: m.real}
}

// loadBehave loads the image of the workloads' containers into the real node.
func loadBehave(ctx context.Context, s *stack) error {
	s.printf("Building the image of the workloads (seconds).")
	return s.cluster.LoadBehave(ctx)
}
