package store

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Collectors are the metrics of the pools of connections.
func (s *Store) Collectors() []prometheus.Collector {
	found := []prometheus.Collector{collectors.NewDBStatsCollector(s.write, "write")}
	if s.read != s.write {
		found = append(found, collectors.NewDBStatsCollector(s.read, "read"))
	}
	return found
}
