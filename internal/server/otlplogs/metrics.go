package otlplogs

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backlogTimeout limits the database query of a scrape.
const backlogTimeout = 2 * time.Second

// metrics are those of one exporter, and of the queue that all replicas share.
type metrics struct {
	exported, failures prometheus.Counter
	dropped            *prometheus.CounterVec
	backlog            *backlogCollector
}

func newMetrics(queue Queue) metrics {
	m := metrics{
		exported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controlplane_otlp_log_records_exported_total", Help: "Log records that the backend of --otlp-logs-endpoint accepted.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controlplane_otlp_log_failures_total", Help: "Failed exports of logs. Their records are kept, and sent again.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controlplane_otlp_log_records_dropped_total", Help: "Log records that were dropped: refused by the backend, or expired before their export.",
		}, []string{"cause"}),
		backlog: newBacklogCollector(queue),
	}
	for _, cause := range []string{"refused", "expired"} {
		m.dropped.WithLabelValues(cause)
	}
	return m
}

// Collectors returns the metrics of the exporter.
func (e *Exporter) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.metrics.exported, e.metrics.failures, e.metrics.dropped, e.metrics.backlog}
}

// backlogCollector reads the backlog from the database at each scrape, so all replicas report the same.
type backlogCollector struct {
	queue        Queue
	records, lag *prometheus.Desc
}

func newBacklogCollector(queue Queue) *backlogCollector {
	return &backlogCollector{
		queue:   queue,
		records: prometheus.NewDesc("controlplane_otlp_log_records_waiting", "Log records that wait for export.", nil, nil),
		lag:     prometheus.NewDesc("controlplane_otlp_log_lag_seconds", "Age of the oldest log record that waits for export; 0 if none waits.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *backlogCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.records
	to <- c.lag
}

// Collect implements prometheus.Collector.
func (c *backlogCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout) // Collect has no context parameter
	defer cancel()
	records, oldest, err := c.queue.LogBacklog(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.records, err)
		return
	}
	lag := 0.
	if oldest != nil {
		lag = max(time.Since(*oldest).Seconds(), 0)
	}
	to <- prometheus.MustNewConstMetric(c.records, prometheus.GaugeValue, float64(records))
	to <- prometheus.MustNewConstMetric(c.lag, prometheus.GaugeValue, lag)
}
