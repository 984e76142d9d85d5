package journal

import "github.com/prometheus/client_golang/prometheus"

// RegisterMetrics registers the metrics of a journal, which may be nil.
func RegisterMetrics(registry prometheus.Registerer, j *Journal) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_state_bytes",
			Help: "Approximate size of the records of --state-dir in bytes, with the uncommitted ones.",
		}, func() float64 { return float64(j.Bytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_state_failing",
			Help: "1 while --state-dir cannot be written. Undelivered reports are then lost on restart.",
		}, func() float64 {
			if j.Err() != nil {
				return 1
			}
			return 0
		}))
}
