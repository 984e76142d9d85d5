package informers

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts the cost of the informers.
type Metrics struct {
	watches          *prometheus.GaugeVec
	unwatchedKinds   *prometheus.GaugeVec
	watchErrors      *prometheus.CounterVec
	stalls           *prometheus.CounterVec
	fetches          prometheus.Counter
	lookups          prometheus.Counter
	postponedLookups prometheus.Counter
}

// NewMetrics registers the metrics of the informers.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "threeport_agent_watches",
			Help: "Running informers by resource.",
		}, []string{"resource"}),
		unwatchedKinds: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "threeport_agent_unwatched_kinds",
			Help: "Kinds that are not watched in the cluster or in a namespace, by state. Their workloads are Unknown.",
		}, []string{"state"}),
		watchErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_watch_errors_total",
			Help: "Lists and watches that ended in an error and are retried, by resource.",
		}, []string{"resource"}),
		stalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_watch_stalls_total",
			Help: "Informers that were restarted because they lagged behind the API server without an error, by resource.",
		}, []string{"resource"}),
		fetches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_object_fetches_total",
			Help: "Listed objects that were read one by one because the cache keeps a part of them only.",
		}),
		lookups: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_owner_lookups_total",
			Help: "Reads of owners whose kinds are not watched.",
		}),
		postponedLookups: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_owner_lookups_postponed_total",
			Help: "Reads of owners that were postponed because too many others were pending, or because they failed repeatedly.",
		}),
	}
	registry.MustRegister(m.watches, m.unwatchedKinds, m.watchErrors, m.stalls, m.fetches, m.lookups, m.postponedLookups)
	return m
}
