package store

import (
	"context"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const clustersQuery = "SELECT c.uid, c.name, c.agentversion, c.agenttime, c.delayseconds, c.pending, c.deadletters, c.dropped, c.heardat, c.silent, " +
	"(SELECT COUNT(*) FROM workloads w WHERE w.clusteruid = c.uid AND w.deletedat IS NULL) " +
	"FROM clusters c ORDER BY c.namekey, c.uid"

// Clusters returns all clusters whose agents have been heard, by name.
func (s *Store) Clusters(ctx context.Context) ([]threeport.Cluster, error) {
	clusters, err := collect(ctx, s, clustersQuery, nil, scanCluster)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return append([]threeport.Cluster{}, clusters...), nil
}

func scanCluster(scan scanner) (threeport.Cluster, error) {
	var (
		c                  threeport.Cluster
		agentTime, heardAt int64
	)
	err := scan(&c.ClusterUID, &c.ClusterName, &c.Version, &agentTime, &c.DelaySeconds, &c.Pending, &c.DeadLetters, &c.Dropped,
		&heardAt, &c.Silent, &c.Workloads)
	c.Time, c.HeardAt = fromMicros(agentTime), fromMicros(heardAt)
	return c, err
}
