package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// stack is the cluster for the scenarios.
type stack struct {
	cluster  *cluster.Cluster
	client   dynamic.Interface
	upstream *upstream.Upstream
}

// start starts a cluster with a real node, and loads the scenarios' image. Call stop also after an error.
func start(ctx context.Context) (*stack, error) {
	s := &stack{}
	var err error
	if s.cluster, err = cluster.Start(ctx, cluster.Options{RealNode: true, Nodes: 1, Log: os.Stderr}); err != nil {
		return s, err
	}
	if s.client, err = dynamic.NewForConfig(s.cluster.Config()); err != nil {
		return s, err
	}
	if s.upstream, err = upstream.New(s.cluster.Config(), upstream.API{}); err != nil { // it only creates objects
		return s, err
	}
	return s, s.cluster.LoadBehave(ctx)
}

func (s *stack) stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// deploy creates a scenario's objects in a new namespace. The returned function deletes it; call it also after an error.
func (s *stack) deploy(ctx context.Context, of scenario.Scenario, namespace string) (scenario.Env, func(), error) {
	env := scenario.Env{Client: s.client, Namespace: namespace, Node: scenario.ClusterNode{Cluster: s.cluster}}
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
	objects, err := of.Objects(namespace)
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
