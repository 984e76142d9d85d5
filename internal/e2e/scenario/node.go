package scenario

import (
	"context"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// ClusterNode is the real node of a local cluster.
type ClusterNode struct{ Cluster *cluster.Cluster }

// Name returns the name of the Node object.
func (ClusterNode) Name() string { return cluster.RealNodeName }

// StopKubelet kills the kubelet; containers keep running.
func (n ClusterNode) StopKubelet(context.Context) error { return n.Cluster.Kill(cluster.Kubelet) }

// StartKubelet starts the kubelet again.
func (n ClusterNode) StartKubelet(ctx context.Context) error {
	return n.Cluster.Restart(ctx, cluster.Kubelet)
}
