package notify

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
)

// Metrics has the metrics of deliveries.
type Metrics struct {
	reports *prometheus.CounterVec
	delay   *prometheus.HistogramVec
}

// The buckets of native histograms. The factor bounds the error of a quantile to 5 %, and the number bounds the memory of a series.
const (
	nativeBucketFactor = 1.1
	maxNativeBuckets   = 100
)

// The results of a delivery.
const (
	resultAccepted    = "accepted"
	resultRetried     = "retried"
	resultRejected    = "rejected"
	resultGone        = "gone"
	resultUnknown     = "unknown"
	resultNotAssigned = "not_assigned"
)

// NewMetrics registers the metrics of deliveries and of an outbox.
func NewMetrics(registry prometheus.Registerer, box *outbox.Outbox) *Metrics {
	m := &Metrics{
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "threeport_agent_reports_total",
			Help: "Reports sent to the control plane, by kind and result. The kind `adoption` is an initial sync. " +
				"The result `gone`: the row was removed; `unknown`: the row never existed; `not_assigned`: the instance is not " +
				"assigned to the cluster. Unknown and unassigned reports are kept.",
		}, []string{"kind", "result"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "threeport_agent_report_delay_seconds",
			Help: "Time from when a report was seen to when the control plane accepted it.",
			// 60 s is the threshold of ThreeportAgentDeliveryDelayed. A quantile is exact at the limits of buckets only.
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},

			NativeHistogramBucketFactor: nativeBucketFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets,
		}, []string{"kind"}),
	}
	registry.MustRegister(m.reports, m.delay,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_reports_pending",
			Help: "Reports that the control plane has not accepted yet.",
		}, func() float64 { return float64(box.Pending()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_dead_letters",
			Help: "Reports that the control plane rejected, which are not sent again.",
		}, func() float64 { return float64(box.DeadLetters()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "threeport_agent_events_dropped_total",
			Help: "Events that were dropped because no more may be kept.",
		}, func() float64 { return float64(box.Dropped()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "threeport_agent_delivery_suspended",
			Help: "1 while the control plane does not answer, or refuses the agent, and only probes are sent.",
		}, func() float64 {
			if box.Suspended() {
				return 1
			}
			return 0
		}))
	return m
}

func (m *Metrics) accepted(item outbox.Item) {
	m.count(item, resultAccepted)
	m.delay.WithLabelValues(ReportKind(item.Report)).Observe(time.Since(item.Since).Seconds())
}

func (m *Metrics) count(item outbox.Item, result string) {
	m.reports.WithLabelValues(ReportKind(item.Report), result).Inc()
}

// ReportKind returns the kind of a report in the labels of metrics.
func ReportKind(r observe.Report) string {
	switch r.(type) {
	case observe.Operation:
		return "operation"
	case observe.Event:
		return "event"
	case observe.Tree:
		return "tree"
	case outbox.InitialSync:
		return "adoption"
	default:
		return "status"
	}
}
