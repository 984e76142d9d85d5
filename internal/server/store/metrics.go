package store

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// fleetTimeout limits the database queries of a scrape.
const fleetTimeout = 2 * time.Second

// Collectors returns the metrics of the connection pools, of clusters and workloads, and of rejected reports.
func (s *Store) Collectors() []prometheus.Collector {
	found := []prometheus.Collector{collectors.NewDBStatsCollector(s.write, "write"), newFleetCollector(s), s.overQuota}
	if s.config.WorkloadMetrics.Workloads > 0 {
		found = append(found, newWorkloadCollector(s))
	}
	for _, pool := range []struct {
		name string
		*readPool
	}{{"read", s.read}, {"reserved", s.reserved}} {
		if pool.DB != s.write {
			found = append(found, collectors.NewDBStatsCollector(pool.DB, pool.name))
		}
	}
	return found
}

// fleetCollector reads the metrics of clusters and workloads from the database at each scrape, so all replicas report
// the same. If the database does not answer, only these metrics are missing.
type fleetCollector struct {
	store                                                                *Store
	clusters, workloads, delay, deadLetters, storedBytes, maxStoredBytes *prometheus.Desc
}

func newFleetCollector(s *Store) *fleetCollector {
	return &fleetCollector{
		store: s,
		clusters: prometheus.NewDesc("controlplane_clusters",
			"Clusters by state: reporting, silent, or v0 for those whose agents send no heartbeat.", []string{"state"}, nil),
		workloads: prometheus.NewDesc("controlplane_workloads", "Workloads by displayed status.", []string{"status"}, nil),
		delay: prometheus.NewDesc("controlplane_agent_delay_seconds",
			"Age of the oldest undelivered report, as agents reported it last; the maximum over reporting clusters.", nil, nil),
		deadLetters: prometheus.NewDesc("controlplane_agent_dead_letters",
			"Rejected reports that agents keep, as they reported last.", nil, nil),
		storedBytes: prometheus.NewDesc("controlplane_cluster_stored_bytes",
			"Size of the definitions and objects of a cluster, for the 100 clusters that store most.", []string{"cluster"}, nil),
		maxStoredBytes: prometheus.NewDesc("controlplane_cluster_stored_bytes_limit",
			"Maximum size of the definitions and objects of one cluster (--max-cluster-bytes).", nil, nil),
	}
}

func newOverQuotaCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "controlplane_quota_rejected_reports_total", Help: "Reports that were rejected because of --max-cluster-bytes.",
	})
}

// Describe implements prometheus.Collector.
func (f *fleetCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.clusters, f.workloads, f.delay, f.deadLetters, f.storedBytes, f.maxStoredBytes} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (f *fleetCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), fleetTimeout) // Collect has no context parameter
	defer cancel()
	for desc, collected := range map[*prometheus.Desc]func(context.Context, chan<- prometheus.Metric) error{
		f.clusters: f.collectClusters, f.workloads: f.collectWorkloads, f.storedBytes: f.collectStoredBytes,
	} {
		if err := collected(ctx, to); err != nil {
			to <- prometheus.NewInvalidMetric(desc, err)
		}
	}
}

func (f *fleetCollector) collectWorkloads(ctx context.Context, to chan<- prometheus.Metric) error {
	counts, err := f.store.Counts(ctx, WorkloadQuery{})
	for status, n := range counts {
		to <- prometheus.MustNewConstMetric(f.workloads, prometheus.GaugeValue, float64(n), status)
	}
	return err
}

// clustersOfState summarizes the clusters of one state.
type clustersOfState struct {
	state        string
	n            int64
	longestDelay float64 // in seconds
	deadLetters  float64
}

const clusterStatesQuery = "SELECT CASE WHEN silent THEN 'silent' WHEN v0only THEN 'v0' ELSE 'reporting' END, COUNT(*), " +
	"MAX(delayseconds), SUM(CAST(deadletters AS DOUBLE PRECISION)) FROM clusters GROUP BY 1"

func (f *fleetCollector) collectClusters(ctx context.Context, to chan<- prometheus.Metric) error {
	found, err := collect(ctx, f.store.read, clusterStatesQuery, nil, func(scan scanner) (c clustersOfState, err error) {
		err = scan(&c.state, &c.n, &c.longestDelay, &c.deadLetters)
		return c, err
	})
	if err != nil {
		return fmt.Errorf("count clusters: %w", err)
	}
	states := map[string]clustersOfState{"reporting": {}, "silent": {}, "v0": {}}
	deadLetters := 0.
	for _, c := range found {
		states[c.state] = c
		deadLetters += c.deadLetters
	}
	for state, c := range states {
		to <- prometheus.MustNewConstMetric(f.clusters, prometheus.GaugeValue, float64(c.n), state)
	}
	to <- prometheus.MustNewConstMetric(f.delay, prometheus.GaugeValue, states["reporting"].longestDelay)
	to <- prometheus.MustNewConstMetric(f.deadLetters, prometheus.GaugeValue, deadLetters)
	return nil
}

// maxClusterLabels limits the time series with a cluster as label.
const maxClusterLabels = 100

// clusterStoredBytes is the size of a cluster's definitions and objects.
type clusterStoredBytes struct {
	uid   string
	bytes float64
}

func (f *fleetCollector) collectStoredBytes(ctx context.Context, to chan<- prometheus.Metric) error {
	to <- prometheus.MustNewConstMetric(f.maxStoredBytes, prometheus.GaugeValue, float64(f.store.config.ClusterBytes))
	found, err := collect(ctx, f.store.read, "SELECT uid, storedbytes FROM clusters ORDER BY storedbytes DESC, uid LIMIT ?",
		[]any{maxClusterLabels}, func(scan scanner) (c clusterStoredBytes, err error) {
			err = scan(&c.uid, &c.bytes)
			return c, err
		})
	if err != nil {
		return fmt.Errorf("read stored bytes: %w", err)
	}
	for _, c := range found {
		to <- prometheus.MustNewConstMetric(f.storedBytes, prometheus.GaugeValue, c.bytes, c.uid)
	}
	return nil
}
