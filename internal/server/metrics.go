package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// metrics are the metrics of one server. Each server has its own registry, because two may run in one process.
type metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	reports    *prometheus.CounterVec
	setReports prometheus.Histogram
	setBytes   prometheus.Histogram
	watches    prometheus.Gauge
	claims     prometheus.Counter
}

// The buckets of native histograms. The factor bounds the error of a quantile to 5 %, and the number bounds the memory of a series.
const (
	nativeBucketFactor = 1.1
	maxNativeBuckets   = 100
)

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controlplane_request_duration_seconds", Help: "Time to answer a request, by route, method and code.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},

			NativeHistogramBucketFactor: nativeBucketFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets,
		}, []string{"route", "method", "code"}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controlplane_reports_total", Help: "Reports in report sets, by outcome.",
		}, []string{"outcome"}),
		setReports: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "controlplane_report_set_reports", Help: "Reports in a report set.",
			Buckets: []float64{0, 1, 3, 10, 30, 100, 300, 1000},

			NativeHistogramBucketFactor: nativeBucketFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets,
		}),
		setBytes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "controlplane_report_set_bytes", Help: "Size of a report set, decompressed.",
			Buckets: prometheus.ExponentialBuckets(1<<10, 4, 9), // 1 KiB to 64 MiB

			NativeHistogramBucketFactor: nativeBucketFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets,
		}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "controlplane_watches", Help: "Streams of server-sent events that are open.",
		}),
		claims: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controlplane_claims_total", Help: "Workloads without a cluster that an agent claimed for its own (--require-assignment=false).",
		}),
	}
	m.registry.MustRegister(m.requests, m.reports, m.setReports, m.setBytes, m.watches, m.claims,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler serves the metrics in the requested format. While the database does not answer, its metrics are left out.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
}

// request counts a request that has ended. A stream counts with a duration of 0.
func (m *metrics) request(info *requestInfo, method string, code int, took time.Duration) {
	route := info.route
	if route == "" {
		route = "none" // refused before it was routed
	}
	if info.stream {
		took = 0
	}
	m.requests.WithLabelValues(route, methodLabel(method, code), strconv.Itoa(code)).Observe(took.Seconds())
}

// methodLabel bounds the number of series: a client may send any method to any route.
func methodLabel(method string, code int) string {
	known := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	if code != http.StatusMethodNotAllowed && slices.Contains(known, method) {
		return method
	}
	return "other"
}

// reportSet counts a report set that was applied.
func (m *metrics) reportSet(bytes int64, answer threeport.ReportSetAnswer) {
	m.setReports.Observe(float64(len(answer.Items)))
	m.setBytes.Observe(float64(bytes))
	for i := range answer.Items {
		m.reports.WithLabelValues(answer.Items[i].Outcome).Inc()
	}
}
