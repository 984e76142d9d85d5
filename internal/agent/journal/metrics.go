package journal

import "github.com/prometheus/client_golang/prometheus"

// RegisterMetrics registers the metrics of a journal, which may be nil.
func RegisterMetrics(registry prometheus.Registerer, j *Journal) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_state_bytes",
			Help: "About how large the records are that are kept in --state-dir, or are to be.",
		}, func() float64 { return float64(j.Bytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_state_failing",
			Help: "1 while --state-dir cannot be written, and what is not delivered yet is in memory only.",
		}, func() float64 {
			if j.Err() != nil {
				return 1
			}
			return 0
		}))
}
