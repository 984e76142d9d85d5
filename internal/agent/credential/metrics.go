package credential

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics has the end of the token and the failures of its renewal.
type Metrics struct {
	expiry   *prometheus.GaugeVec
	failures prometheus.Counter
}

// NewMetrics registers the metrics of a [Renewer].
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "threeport_agent_token_expiration_timestamp_seconds",
			Help: "When the bearer token for the control-plane API ends, in Unix seconds. It is absent without --token-secret, and while the end is unknown.",
		}, nil),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_token_renewal_failures_total",
			Help: "Failed attempts to renew the bearer token or to write it to its Secret.",
		}),
	}
	registry.MustRegister(m.expiry, m.failures)
	return m
}

// expires sets the end of the token; nil if there is none, or if it is unknown.
func (m *Metrics) expires(at *time.Time) {
	if at == nil {
		m.expiry.Reset()
		return
	}
	m.expiry.WithLabelValues().Set(float64(at.Unix()))
}
