package resync

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts rounds of comparisons and their repairs.
type Metrics struct {
	repairs *prometheus.CounterVec
	audits  *prometheus.CounterVec
	last    prometheus.Gauge
}

// watchKind is the kind of a restart of an informer.
const watchKind = "watch"

// NewMetrics registers the metrics of a [Resyncer].
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_audit_repairs_total",
			Help: "Repairs by audits, normally zero, by kind: rows of the control plane (operation, event, status) and caches of the agent (watch).",
		}, []string{"kind"}),
		audits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_audits_total",
			Help: "Audits of all workloads, by result (ok, failed: not all could be read).",
		}, []string{"result"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "threeport_agent_audit_last_success_timestamp_seconds",
			Help: "When the last audit ended that could read everything, in Unix seconds; 0 before the first.",
		}),
	}
	for _, kind := range []string{"operation", "event", "status", watchKind} {
		m.repairs.WithLabelValues(kind)
	}
	for _, result := range []string{"ok", "failed"} {
		m.audits.WithLabelValues(result)
	}
	registry.MustRegister(m.repairs, m.audits, m.last)
	return m
}

// ended counts a round.
func (m *Metrics) ended(ok bool) {
	if !ok {
		m.audits.WithLabelValues("failed").Inc()
		return
	}
	m.audits.WithLabelValues("ok").Inc()
	m.last.Set(float64(time.Now().UnixNano()) / 1e9)
}
