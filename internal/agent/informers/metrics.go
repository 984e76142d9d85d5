package informers

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what watching costs.
type Metrics struct {
	watches     *prometheus.GaugeVec
	watchErrors *prometheus.CounterVec
	stalls      *prometheus.CounterVec
	fetches     prometheus.Counter
	lookups     prometheus.Counter
	assessments prometheus.Counter
}

// NewMetrics registers the metrics of watching.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "threeport_agent_watches",
			Help: "Informers that run, by resource.",
		}, []string{"resource"}),
		watchErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_watch_errors_total",
			Help: "Lists and watches that ended in an error which client-go tries to mend, by resource.",
		}, []string{"resource"}),
		stalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_watch_stalls_total",
			Help: "Informers that were restarted because they had fallen behind the API server without an error, by resource.",
		}, []string{"resource"}),
		fetches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_object_fetches_total",
			Help: "Listed objects that were read one by one, because the cache keeps less of them.",
		}),
		lookups: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_owner_lookups_total",
			Help: "Owners of kinds that are not watched that were asked for.",
		}),
		assessments: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_assessments_total",
			Help: "Times that the health of an object was judged.",
		}),
	}
	registry.MustRegister(m.watches, m.watchErrors, m.stalls, m.fetches, m.lookups, m.assessments)
	return m
}
