package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/journal"
)

// addStateMetrics registers the metrics of --state-dir.
func addStateMetrics(registry prometheus.Registerer, state *journal.Journal) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_state_bytes",
			Help: "About how large the records are that are kept in --state-dir, or are to be.",
		}, func() float64 { return float64(state.Bytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_state_failing",
			Help: "1 while --state-dir cannot be written, and what is not delivered yet is in memory only.",
		}, func() float64 {
			if state.Err() != nil {
				return 1
			}
			return 0
		}))
}
