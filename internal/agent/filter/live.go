package filter

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/reload"
)

// Live holds the current filters of a file or a folder, and the rates of their workloads. A nil Live reports each Event and object.
type Live struct {
	files   *reload.Live[*Filters]
	metrics *Metrics
	log     logr.Logger
	rates   rates
}

// Open reads filters. Invalid ones are an error here; later, Run keeps the previous filters instead.
func Open(path string, metrics *Metrics, log logr.Logger) (*Live, error) {
	files, err := reload.Open(path, reload.YAML, Parse, metrics, log)
	if err != nil {
		return nil, err
	}
	return &Live{files: files, metrics: metrics, log: log}, nil
}

// Run reloads the filters when they change, until the context ends. They decide about the Events that are observed from then on. It
// calls changed after each change, so that the trees are reported again.
func (l *Live) Run(ctx context.Context, changed func()) { l.files.Run(ctx, changed) }

// Decide returns what happens to an Event.
func (l *Live) Decide(ev *corev1.Event) Decision {
	if l == nil {
		return Decision{Action: Report}
	}
	d, err := l.files.Current().Decide(ev)
	if err != nil {
		l.failed(err, "namespace", ev.Namespace, "event", ev.Name)
	}
	return d
}

// DecideObject returns what happens to a derived object.
func (l *Live) DecideObject(o Object) Decision {
	if l == nil {
		return Decision{Action: Report}
	}
	d, err := l.files.Current().DecideObject(o)
	if err != nil {
		l.failed(err, "kind", o.Kind, "namespace", o.Namespace, "name", o.Name)
	}
	return d
}

func (l *Live) failed(err error, about ...any) {
	l.metrics.failed.Inc()
	l.log.V(1).Info("A filter could not be evaluated", append(about, "reason", err.Error())...)
}

// Allow reports whether the rate of a decision with the action Limit lets a workload report another Event.
func (l *Live) Allow(d Decision, workload target.Instance) bool {
	return l.rates.allow(rateOf{d.Filter, d.PerMinute, workload}, time.Now())
}

// Count counts a report that was left out.
func (l *Live) Count(a Action) {
	if l != nil {
		l.metrics.filtered.WithLabelValues(string(a)).Inc()
	}
}

// rates are the rates of workloads. It is safe for concurrent use.
type rates struct {
	mu       sync.Mutex
	limiters map[rateOf]*rate.Limiter
	swept    time.Time
}

// rateOf names the rate of a filter for a workload.
type rateOf struct {
	filter    string
	perMinute int
	workload  target.Instance
}

// sweepInterval is how often limiters are removed that have no Events to forget.
const sweepInterval = 10 * time.Minute

func (r *rates) allow(of rateOf, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) > sweepInterval {
		r.swept = now
		for other, limiter := range r.limiters {
			if limiter.TokensAt(now) >= float64(other.perMinute) {
				delete(r.limiters, other)
			}
		}
	}
	limiter := r.limiters[of]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Every(time.Minute/time.Duration(of.perMinute)), of.perMinute)
		if r.limiters == nil {
			r.limiters = map[rateOf]*rate.Limiter{}
		}
		r.limiters[of] = limiter
	}
	return limiter.AllowN(now, 1)
}

// Metrics are the metrics of the filters.
type Metrics struct {
	reload.Gauges
	failed   prometheus.Counter
	filtered *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		Gauges: reload.Gauges{
			InUse: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "threeport_agent_event_filters", Help: "Filters of --event-filters that are in use.",
			}),
			Rejected: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "threeport_agent_event_filters_failing",
				Help: "1 while the files of --event-filters are unreadable or invalid, so that the previous filters are in use.",
			}),
		},
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "threeport_agent_event_filter_errors_total",
			Help: "Evaluations of filters that failed. The Event or object is handled as if the filter did not match.",
		}),
		filtered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_events_filtered_total",
			Help: "Reports of Events that a filter of --event-filters left out, by its action: drop or limit.",
		}, []string{"action"}),
	}
	for _, action := range []Action{Drop, Limit} {
		m.filtered.WithLabelValues(string(action))
	}
	registry.MustRegister(m.InUse, m.Rejected, m.failed, m.filtered)
	return m
}
