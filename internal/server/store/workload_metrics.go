package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxWorkloadMetrics is the greatest [WorkloadMetrics.Workloads]. A workload has six series.
const MaxWorkloadMetrics = 20_000

// WorkloadMetrics configures the metric with the status of each workload.
type WorkloadMetrics struct {
	// Workloads is how many workloads have series: the first ones by ID, so that a workload keeps its series. 0 is for none.
	Workloads int
	// Labels are labels besides the status; nil for those of DefaultWorkloadLabels. Workloads that agree in them share their series.
	Labels []string
}

// DefaultWorkloadLabels are the labels of [WorkloadMetrics] if none are given.
var DefaultWorkloadLabels = []string{"workload", "cluster"}

// workloadLabels has the column of each label that is allowed. Their values change rarely, unlike those of a reason.
var workloadLabels = map[string]string{
	"workload":      cutText("w.name", maxLabelText),
	"cluster":       cutText("COALESCE(NULLIF(c.name, ''), w.clusteruid, '')", maxLabelText),
	"cluster_uid":   "COALESCE(w.clusteruid, '')",
	"workload_id":   "CAST(w.id AS TEXT)",
	"workload_type": "w.type",
}

// maxLabelText limits the value of a label, in characters.
const maxLabelText = 253

// Validate names a wrong value, and the accepted ones.
func (m WorkloadMetrics) Validate() error {
	if m.Workloads < 0 || m.Workloads > MaxWorkloadMetrics {
		return fmt.Errorf("metrics of %d workloads: use 0 to %d", m.Workloads, MaxWorkloadMetrics)
	}
	seen := map[string]bool{}
	for _, label := range m.Labels {
		if _, ok := workloadLabels[label]; !ok || seen[label] {
			return fmt.Errorf("label %q of the metrics of workloads: use some of %s, each once", label, strings.Join(slices.Sorted(maps.Keys(workloadLabels)), ", "))
		}
		seen[label] = true
	}
	return nil
}

// workloadCollector reads the status of each workload from the database at each scrape.
type workloadCollector struct {
	store           *Store
	config          WorkloadMetrics
	status, without *prometheus.Desc
}

func newWorkloadCollector(s *Store) *workloadCollector {
	config := s.config.WorkloadMetrics
	if len(config.Labels) == 0 {
		config.Labels = DefaultWorkloadLabels
	}
	return &workloadCollector{
		store: s, config: config,
		status: prometheus.NewDesc("threeport_workload_status",
			"1 for the displayed status of a workload, and 0 for each other status. Only with --workload-metrics, which bounds the workloads; "+
				"the labels are status and those of --workload-metrics-labels.",
			append(slices.Clone(config.Labels), "status"), nil),
		without: prometheus.NewDesc("controlplane_workloads_without_metric",
			"Workloads beyond the limit of --workload-metrics, which have no threeport_workload_status.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *workloadCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.status
	to <- c.without
}

// Collect implements prometheus.Collector.
func (c *workloadCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), fleetTimeout) // Collect has no context parameter
	defer cancel()
	if err := c.collect(ctx, to); err != nil {
		to <- prometheus.NewInvalidMetric(c.status, err)
	}
}

// labelledStatus is the status of a workload with the values of its labels.
type labelledStatus struct {
	labels []string
	rank   int
}

func (c *workloadCollector) collect(ctx context.Context, to chan<- prometheus.Metric) error {
	found, err := collect(ctx, c.store.read, c.query(), []any{c.config.Workloads}, c.scan)
	if err != nil {
		return fmt.Errorf("read the statuses of workloads: %w", err)
	}
	series := map[string][]string{} // the values of the labels
	counts := map[string][]float64{}
	for _, w := range found {
		key := strings.Join(w.labels, "\x00")
		if counts[key] == nil {
			series[key], counts[key] = w.labels, make([]float64, len(statuses))
		}
		counts[key][w.rank] = 1
	}
	for key, of := range counts {
		for rank, value := range of {
			to <- prometheus.MustNewConstMetric(c.status, prometheus.GaugeValue, value, append(slices.Clone(series[key]), statuses[rank])...)
		}
	}
	total, err := c.store.Counts(ctx, WorkloadQuery{})
	if err != nil {
		return err
	}
	without := -int64(len(found))
	for _, n := range total {
		without += n
	}
	to <- prometheus.MustNewConstMetric(c.without, prometheus.GaugeValue, float64(max(without, 0)))
	return nil
}

func (c *workloadCollector) query() string {
	columns := make([]string, len(c.config.Labels))
	for i, label := range c.config.Labels {
		columns[i] = workloadLabels[label]
	}
	return "SELECT w.rank, " + strings.Join(columns, ", ") +
		" FROM workloads w LEFT JOIN clusters c ON c.uid = w.clusteruid WHERE w.deletedat IS NULL ORDER BY w.id, w.type LIMIT ?"
}

func (c *workloadCollector) scan(scan scanner) (w labelledStatus, err error) {
	w.labels = make([]string, len(c.config.Labels))
	values := []any{&w.rank}
	for i := range w.labels {
		values = append(values, &w.labels[i])
	}
	if err = scan(values...); err == nil && (w.rank < 0 || w.rank >= len(statuses)) {
		err = fmt.Errorf("a workload has the rank %d, want 0 to %d", w.rank, len(statuses)-1)
	}
	for i, value := range w.labels {
		w.labels[i] = strings.ToValidUTF8(value, "�")
	}
	return w, err
}
