package tracing

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// maxQueue bounds the spans that wait for their export. They take about 2 KiB each.
	maxQueue = 2048
	// maxBatch bounds the spans of a request.
	maxBatch = 512
	// exportInterval is the time between two exports.
	exportInterval = time.Second
	// exportTimeout bounds one request.
	exportTimeout = 10 * time.Second
)

// The results of a span.
const (
	resultExported = "exported"
	resultFailed   = "failed"  // its request failed
	resultDropped  = "dropped" // the queue was full, or the program ended
)

// queue exports spans in batches. It implements [sdktrace.SpanProcessor], like the SDK's batch processor, which does not count what it
// drops. A batch that fails is not sent again, so that a collector that does not answer costs no memory.
type queue struct {
	exporter sdktrace.SpanExporter
	waiting  chan sdktrace.ReadOnlySpan
	spans    *prometheus.CounterVec // by result
	log      logr.Logger
	failing  bool // the last export failed; for run only

	stop   chan struct{} // closed to end run after a last export
	cancel func()        // ends a request that is under way
	done   chan struct{} // closed after run
}

func newQueue(ctx context.Context, exporter sdktrace.SpanExporter, program string, log logr.Logger) *queue {
	ctx, cancel := context.WithCancel(ctx)
	q := &queue{
		exporter: exporter, waiting: make(chan sdktrace.ReadOnlySpan, maxQueue), log: log,
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: program + "_otlp_spans_total",
			Help: "Spans of --otlp-traces-endpoint, by result (exported, failed: their request failed, dropped: too many waited).",
		}, []string{"result"}),
		stop: make(chan struct{}), cancel: cancel, done: make(chan struct{}),
	}
	for _, result := range []string{resultExported, resultFailed, resultDropped} {
		q.spans.WithLabelValues(result)
	}
	go q.run(ctx)
	return q
}

// OnStart does nothing.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a span. It does not block.
func (q *queue) OnEnd(span sdktrace.ReadOnlySpan) {
	select {
	case q.waiting <- span:
	default:
		q.spans.WithLabelValues(resultDropped).Inc()
	}
}

// ForceFlush does nothing: the next export is due in a second.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown exports the spans that wait, until ctx ends. It is called once.
func (q *queue) Shutdown(ctx context.Context) error {
	close(q.stop)
	defer context.AfterFunc(ctx, q.cancel)()
	<-q.done
	q.cancel()
	q.spans.WithLabelValues(resultDropped).Add(float64(len(q.waiting)))
	return q.exporter.Shutdown(ctx)
}

// run exports until stop is closed.
func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	tick := time.NewTicker(exportInterval)
	defer tick.Stop()
	for {
		select {
		case <-q.stop:
			q.export(ctx)
			return
		case <-tick.C:
			q.export(ctx)
		}
	}
}

// export sends the spans that wait, until a batch fails.
func (q *queue) export(ctx context.Context) {
	for n := len(q.waiting); n > 0; n = len(q.waiting) {
		batch := make([]sdktrace.ReadOnlySpan, min(n, maxBatch))
		for i := range batch {
			batch[i] = <-q.waiting // only this goroutine receives
		}
		if !q.send(ctx, batch) {
			return
		}
	}
}

// send sends a batch. It logs the first failure, and the recovery.
func (q *queue) send(ctx context.Context, batch []sdktrace.ReadOnlySpan) bool {
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	if err := q.exporter.ExportSpans(ctx, batch); err != nil {
		q.spans.WithLabelValues(resultFailed).Add(float64(len(batch)))
		if !q.failing {
			q.failing = true
			q.log.Info("The export of traces fails. Spans are dropped and counted until it succeeds.", "error", err.Error())
		}
		return false
	}
	q.spans.WithLabelValues(resultExported).Add(float64(len(batch)))
	if q.failing {
		q.failing = false
		q.log.Info("The export of traces succeeds again.")
	}
	return true
}
