package rules

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of a user's rules.
type Metrics struct {
	rules    prometheus.Gauge
	broken   prometheus.Gauge
	failures *prometheus.CounterVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		rules: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "threeport_agent_health_rules",
			Help: "Rules of --health-rules that are in use.",
		}),
		broken: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "threeport_agent_health_rules_failing",
			Help: "1 while the rules of --health-rules are unreadable or invalid, so that the previous ones are in use.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_health_rule_failures_total",
			Help: "Assessments by a rule of --health-rules that are Unknown because the rule failed, by reason.",
		}, []string{"reason"}),
	}
	registry.MustRegister(m.rules, m.broken, m.failures)
	return m
}

// Use implements [reload.Metrics].
func (m *Metrics) Use(rules int) { m.rules.Set(float64(rules)) }

// Failing implements [reload.Metrics].
func (m *Metrics) Failing(failing bool) {
	m.broken.Set(0)
	if failing {
		m.broken.Set(1)
	}
}

func (m *Metrics) failed(reason string) { m.failures.WithLabelValues(reason).Inc() }
