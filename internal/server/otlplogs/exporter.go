package otlplogs

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/threeport/threeport-agent/internal/otlp"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// pollInterval is the time between two looks at an empty queue.
const pollInterval = time.Second

// The delay after a failure doubles from minBackoff to maxBackoff. The backend may ask for more, up to maxRetryAfter.
const (
	minBackoff    = time.Second
	maxBackoff    = time.Minute
	maxRetryAfter = 10 * time.Minute
)

// Queue has the records: a [store.Store].
type Queue interface {
	// ExportLogs passes records to send, and keeps them if it fails.
	ExportLogs(ctx context.Context, send func(context.Context, []store.LogRecord) error) (store.LogExport, error)
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

func (e *Exporter) countLost(n int64) {
	if n > 0 {
		e.metrics.dropped.WithLabelValues("expired").Add(float64(n))
		e.log.Warn("Log records were removed before their export: pruning deleted their Events, or too many records waited", "records", n)
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

// export sends records, and counts them after the last of them is settled. If some of them are sent again, they count once.
func (e *Exporter) export(ctx context.Context, records []store.LogRecord) error {
	refused, err := e.send(ctx, records)
	if err != nil {
		return err
	}
	e.metrics.exported.Add(float64(int64(len(records)) - refused))
	e.metrics.dropped.WithLabelValues("refused").Add(float64(refused))
	return nil
}

// send sends records, and returns how many of them the backend refused. If it refuses the data of several, send sends them in halves.
func (e *Exporter) send(ctx context.Context, records []store.LogRecord) (refused int64, err error) {
	body, err := e.encode(records)
	if err != nil {
		return 0, err
	}
	refused, reason, err := e.post(ctx, body)
	refusal, isRefused := errors.AsType[*refusedError](err)
	switch {
	case isRefused && len(records) > 1:
		half := len(records) / 2
		first, err := e.send(ctx, records[:half])
		if err != nil {
			return 0, err
		}
		second, err := e.send(ctx, records[half:])
		return first + second, err
	case isRefused:
		refused, reason = 1, refusal.reason
	case err != nil:
		return 0, err
	}
	if refused = min(max(refused, 0), int64(len(records))); refused > 0 {
		e.log.WarnContext(ctx, "The backend refused log records, which are dropped", "endpoint", e.url, "records", refused, "reason", reason)
	}
	return refused, nil
}
