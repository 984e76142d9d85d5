package rules

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/reload"
)

// Metrics are the metrics of a user's rules.
type Metrics struct {
	reload.Gauges
	failures *prometheus.CounterVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		Gauges: reload.Gauges{
			InUse: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "threeport_agent_health_rules",
				Help: "Rules of --health-rules that are in use.",
			}),
			Rejected: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "threeport_agent_health_rules_failing",
				Help: "1 while the rules of --health-rules are unreadable or invalid, so that the previous ones are in use.",
			}),
		},
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_health_rule_failures_total",
			Help: "Assessments by a rule of --health-rules that are Unknown because the rule failed, by reason.",
		}, []string{"reason"}),
	}
	registry.MustRegister(m.InUse, m.Rejected, m.failures)
	return m
}

func (m *Metrics) failed(reason string) { m.failures.WithLabelValues(reason).Inc() }
