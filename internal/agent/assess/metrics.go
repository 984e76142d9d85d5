package assess

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts assessments.
type Metrics struct {
	assessments prometheus.Counter
	panics      prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		assessments: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_assessments_total",
			Help: "Assessments of the health of single objects.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_assessment_panics_total",
			Help: "Assessments that panicked. The verdict on the object is Unknown with the reason InternalError.",
		}),
	}
	registry.MustRegister(m.assessments, m.panics)
	return m
}
