package otlplogs

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/otlp"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// pollInterval is the time between two looks at an empty queue.
const pollInterval = time.Second

// trimInterval is the time between two limitations of the queue, also while the export fails.
const trimInterval = time.Second

// The delay after a failure doubles from minBackoff to maxBackoff. The backend may ask for more, up to maxRetryAfter.
const (
	minBackoff    = time.Second
	maxBackoff    = time.Minute
	maxRetryAfter = 10 * time.Minute
)

// Queue has the records: a [store.Store].
type Queue interface {
	// ExportLogs passes records to send, and keeps those that are not settled.
	ExportLogs(ctx context.Context, send func(context.Context, []store.LogRecord) (settled int, err error)) (store.LogExport, error)
	// TrimLogs removes records beyond the limit of the queue, and returns their number.
	TrimLogs(ctx context.Context) (removed int64, err error)
	// LogBacklog returns the number of records that wait, and when the oldest was stored.
	LogBacklog(ctx context.Context) (records int64, oldest *time.Time, err error)
}

// client sends the requests: an [otlp.Client].
type client interface {
	Post(ctx context.Context, message []byte) (*otlp.Answer, error)
	Close()
}

// Exporter sends the records of a queue to a backend. Make one with [New], and call [Exporter.Run] once.
type Exporter struct {
	queue   Queue
	version string
	client  client
	url     string
	log     *slog.Logger
	metrics metrics
}

// New returns an exporter of this version of the program. The log should limit its lines: there may be one for each record.
func New(queue Queue, config otlp.Config, version string, log *slog.Logger) (*Exporter, error) {
	client, err := otlp.NewClient(config, otlp.LogsPath, "threeport-controlplane/"+version)
	if err != nil {
		return nil, err
	}
	return &Exporter{queue: queue, version: version, client: client, url: client.URL(), log: log, metrics: newMetrics(queue)}, nil
}

// Run exports until ctx ends. It logs failures and retries.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.client.Close()
	var trimming sync.WaitGroup
	trimming.Go(func() { e.trim(ctx) })
	defer trimming.Wait()
	for failures := 0; ; {
		done, err := e.queue.ExportLogs(ctx, e.export)
		if ctx.Err() != nil {
			return nil
		}
		e.countLost(done.Lost)
		wait := pollInterval
		if err != nil {
			failures++
			wait = backoff(failures, err)
			e.metrics.failures.Inc()
			e.log.WarnContext(ctx, "Export of logs failed; the records are kept", "endpoint", e.url, "error", err, "failures", failures, "retryIn", wait)
		} else {
			if failures > 0 && done.Records > 0 {
				e.log.InfoContext(ctx, "Export of logs works again", "endpoint", e.url, "failures", failures)
				failures = 0
			}
			if done.More {
				wait = 0
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// trim limits the queue until ctx ends.
func (e *Exporter) trim(ctx context.Context) {
	ticker := time.NewTicker(trimInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		removed, err := e.queue.TrimLogs(ctx)
		e.countLost(removed)
		if err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "The limit of waiting log records was not applied", "error", err, "retryIn", trimInterval)
		}
	}
}

func (e *Exporter) countLost(n int64) {
	if n > 0 {
		e.metrics.dropped.WithLabelValues("expired").Add(float64(n))
		e.log.Warn("Log records were removed before their export: pruning deleted their Events, or the waiting records had too many bytes", "records", n)
	}
}

// backoff is the delay before the next request. Half of it is random, so that replicas do not send together.
func backoff(failures int, err error) time.Duration {
	delay := min(minBackoff<<min(failures-1, 10), maxBackoff)
	delay = delay/2 + rand.N(delay/2) //nolint:gosec // need not be secret
	if later, ok := errors.AsType[*laterError](err); ok {
		delay = max(delay, min(later.after, maxRetryAfter))
	}
	return delay
}

// export sends records, and returns how many of the first ones are settled: accepted, or dropped because the backend refuses them. The
// others are sent again after an error.
func (e *Exporter) export(ctx context.Context, records []store.LogRecord) (settled int, err error) {
	return e.settle(ctx, records, &refusalBudget{left: maxRefusals})
}

// maxRefusals is how many requests with records of one cluster the backend may refuse in a batch. It is enough to find three invalid
// records, or to send a batch in parts of 64 KiB. The other records of the cluster in this batch are dropped, so that the records of other
// clusters do not wait for hundreds of requests.
const maxRefusals = 32

// refusalBudget counts the refusals of the records of a cluster in a batch.
type refusalBudget struct {
	left   int
	reason string // of the last one
}

// settle sends records. If the backend refuses them, it sends those of each cluster, and then halves.
func (e *Exporter) settle(ctx context.Context, records []store.LogRecord, of *refusalBudget) (settled int, err error) {
	if of.left > 0 {
		refusal, err := e.send(ctx, records)
		if err != nil {
			return 0, err
		}
		if refusal == "" {
			return len(records), nil
		}
		of.left--
		of.reason = refusal
	}
	clusters := slices.Collect(byCluster(records))
	switch {
	case len(clusters) > 1:
		for _, part := range clusters {
			n, err := e.settle(ctx, part, &refusalBudget{left: maxRefusals})
			if settled += n; err != nil {
				return settled, err
			}
		}
		return settled, nil
	case len(records) > 1 && of.left > 0:
		half := len(records) / 2
		first, err := e.settle(ctx, records[:half], of)
		if err != nil {
			return first, err
		}
		second, err := e.settle(ctx, records[half:], of)
		return first + second, err
	default:
		e.countRefused(ctx, int64(len(records)), of.reason)
		return len(records), nil
	}
}

// byCluster yields the records of each cluster, which are together.
func byCluster(records []store.LogRecord) iter.Seq[[]store.LogRecord] {
	return func(yield func([]store.LogRecord) bool) {
		for len(records) > 0 {
			n := slices.IndexFunc(records, func(r store.LogRecord) bool { return r.ClusterUID != records[0].ClusterUID })
			if n < 0 {
				n = len(records)
			}
			if !yield(records[:n]) {
				return
			}
			records = records[n:]
		}
	}
}

// send sends records in one request. It returns the reason if the backend refuses the data, else an empty one.
func (e *Exporter) send(ctx context.Context, records []store.LogRecord) (refusal string, err error) {
	body, err := e.encode(records)
	if err != nil {
		return "", err
	}
	rejected, reason, err := e.post(ctx, body)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused.reason, nil
	}
	if err != nil {
		return "", err
	}
	rejected = min(max(rejected, 0), int64(len(records)))
	e.metrics.exported.Add(float64(int64(len(records)) - rejected))
	e.countRefused(ctx, rejected, reason)
	return "", nil
}

func (e *Exporter) countRefused(ctx context.Context, n int64, reason string) {
	if n > 0 {
		e.metrics.dropped.WithLabelValues("refused").Add(float64(n))
		e.log.WarnContext(ctx, "The backend refused log records, which are dropped", "endpoint", e.url, "records", n, "reason", reason)
	}
}
