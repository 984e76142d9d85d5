package notify

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/observe"
	"github.com/threeport/threeport-agent/internal/outbox"
)

// Metrics counts deliveries.
type Metrics struct {
	reports *prometheus.CounterVec
	delay   *prometheus.HistogramVec
}

// NewMetrics registers the metrics of delivery, and the number of pending reports.
func NewMetrics(registry prometheus.Registerer, pending func() int) *Metrics {
	m := &Metrics{
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_reports_total",
			Help: "Reports sent to the control plane, by kind (operation, event, status) and result (accepted, retried, rejected).",
		}, []string{"kind", "result"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "threeport_agent_report_delay_seconds",
			Help:    "Time from when a report was seen to when the control plane accepted it.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"kind"}),
	}
	registry.MustRegister(m.reports, m.delay, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "threeport_agent_reports_pending",
		Help: "Reports that the control plane has not accepted yet.",
	}, func() float64 { return float64(pending()) }))
	return m
}

func (m *Metrics) accepted(item outbox.Item) {
	m.reports.WithLabelValues(kindOf(item.Report), "accepted").Inc()
	m.delay.WithLabelValues(kindOf(item.Report)).Observe(time.Since(item.Since).Seconds())
}

func (m *Metrics) retried(item outbox.Item) {
	m.reports.WithLabelValues(kindOf(item.Report), "retried").Inc()
}

func (m *Metrics) rejected(item outbox.Item) {
	m.reports.WithLabelValues(kindOf(item.Report), "rejected").Inc()
}

func kindOf(r observe.Report) string {
	switch r.(type) {
	case observe.Operation:
		return "operation"
	case observe.Event:
		return "event"
	default:
		return "status"
	}
}
