package target

import "github.com/prometheus/client_golang/prometheus"

// RegisterMetrics registers the metrics of a registry of workloads.
func RegisterMetrics(registry prometheus.Registerer, r *Registry) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_shared_instances",
			Help: "Instances of several ThreeportWorkloads.",
		}, func() float64 { return float64(r.sharedInstances()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_shared_resources",
			Help: "Objects that ThreeportWorkloads of several instances list.",
		}, func() float64 { return float64(r.sharedResources()) }),
	)
}
