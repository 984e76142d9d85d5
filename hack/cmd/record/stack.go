package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/operators"
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// stack is the cluster for the scenarios.
type stack struct {
	cluster  *cluster.Cluster
	client   dynamic.Interface
	upstream *upstream.Upstream
	// operators are set for scenarios of custom resources.
	operators *operators.Running
}

// start starts a cluster. For operators it starts them; else the cluster has a real node with the scenarios' image. Call stop also
// after an error.
func start(ctx context.Context, needed []operators.Operator) (*stack, error) {
	s := &stack{}
	realNode := len(needed) == 0
	var err error
	if s.cluster, err = cluster.Start(ctx, cluster.Options{RealNode: realNode, Nodes: 1, Log: os.Stderr}); err != nil {
		return s, err
	}
	if s.client, err = dynamic.NewForConfig(s.cluster.Config()); err != nil {
		return s, err
	}
	if s.upstream, err = upstream.New(s.cluster.Config(), upstream.API{}); err != nil { // it only creates objects
		return s, err
	}
	if realNode {
		return s, s.cluster.LoadBehave(ctx)
	}
	s.operators, err = operators.Start(ctx, s.cluster, os.Stderr, needed...)
	return s, err
}

func (s *stack) stop() error {
	if s.operators != nil {
		s.operators.Stop()
	}
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// err returns an error if an operator has ended.
func (s *stack) err() error {
	if s.operators == nil {
		return nil
	}
	return s.operators.Err()
}

// deploy creates a scenario's objects in a new namespace. The returned function deletes it; call it also after an error.
func (s *stack) deploy(ctx context.Context, of scenario.Scenario, namespace string) (scenario.Env, func(), error) {
	env := scenario.Env{Client: s.client, Namespace: namespace}
	if s.operators == nil {
		env.Node = scenario.ClusterNode{Cluster: s.cluster}
	}
	remove := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := env.Remove(ctx); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "record: clean up:", err)
		}
	}
	if err := env.Prepare(ctx); err != nil {
		return env, remove, err
	}
	if s.operators != nil {
		var err error
		if env.Addresses, err = s.operators.Prepare(of, namespace); err != nil {
			return env, remove, err
		}
	}
	objects, err := of.Objects(env)
	if err != nil {
		return env, remove, err
	}
	for _, obj := range objects {
		if _, err := s.upstream.Create(ctx, obj); err != nil {
			return env, remove, err
		}
	}
	return env, remove, nil
}
