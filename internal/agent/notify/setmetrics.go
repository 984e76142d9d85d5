package notify

import "github.com/prometheus/client_golang/prometheus"

// setMetrics counts report sets.
type setMetrics struct {
	sets    *prometheus.CounterVec
	reports prometheus.Histogram
}

// newSetMetrics registers the metrics of a [NegotiatingSender].
func newSetMetrics(registry prometheus.Registerer, inSets func() bool) *setMetrics {
	m := &setMetrics{
		sets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_report_sets_total",
			Help: "Sets of reports sent to the control plane, heartbeats included, by result (answered, failed).",
		}, []string{"result"}),
		reports: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "threeport_agent_report_set_reports",
			Help:    "Reports in a set that was answered, heartbeats left out.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500},

			NativeHistogramBucketFactor: nativeBucketFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets,
		}),
	}
	registry.MustRegister(m.sets, m.reports, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "threeport_agent_report_sets",
		Help: "1 while the control plane takes reports in sets, 0 while they are sent one by one.",
	}, func() float64 {
		if inSets() {
			return 1
		}
		return 0
	}))
	return m
}

// set counts a set with so many reports.
func (m *setMetrics) set(reports int, err error) {
	if err != nil {
		m.sets.WithLabelValues("failed").Inc()
		return
	}
	m.sets.WithLabelValues("answered").Inc()
	if reports > 0 {
		m.reports.Observe(float64(reports))
	}
}
