package notify

import "github.com/prometheus/client_golang/prometheus"

// LinkMetrics counts sets of reports.
type LinkMetrics struct {
	sets    *prometheus.CounterVec
	reports prometheus.Histogram
	inSets  prometheus.Gauge
}

// NewLinkMetrics registers the metrics of a [Link].
func NewLinkMetrics(registry prometheus.Registerer) *LinkMetrics {
	m := &LinkMetrics{
		sets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_report_sets_total",
			Help: "Sets of reports sent to the control plane, heartbeats included, by result (answered, failed).",
		}, []string{"result"}),
		reports: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "threeport_agent_report_set_reports",
			Help:    "Reports in a set that was answered, heartbeats left out.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500},
		}),
		inSets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "threeport_agent_report_sets",
			Help: "1 while the control plane takes reports in sets, 0 while they are sent one by one.",
		}),
	}
	registry.MustRegister(m.sets, m.reports, m.inSets)
	return m
}

// set counts a set with so many reports.
func (m *LinkMetrics) set(reports int, err error) {
	if err != nil {
		m.sets.WithLabelValues("failed").Inc()
		return
	}
	m.sets.WithLabelValues("answered").Inc()
	if reports > 0 {
		m.reports.Observe(float64(reports))
	}
}

func (m *LinkMetrics) mode(sets bool) {
	m.inSets.Set(0)
	if sets {
		m.inSets.Set(1)
	}
}
