package server

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// The limit of net/http's log lines. Anybody causes one with each connection that is no TLS.
const (
	linesPerSecond = 1
	linesBurst     = 20
)

// limitedLog skips the lines beyond a rate. The next line has their number.
type limitedLog struct {
	slog.Handler
	limiter *rate.Limiter
	skipped *atomic.Int64
}

func newLimitedLog(to slog.Handler) *limitedLog {
	return &limitedLog{to, rate.NewLimiter(linesPerSecond, linesBurst), &atomic.Int64{}}
}

// Handle writes a line, or counts it.
func (l *limitedLog) Handle(ctx context.Context, line slog.Record) error {
	if !l.limiter.Allow() {
		l.skipped.Add(1)
		return nil
	}
	if n := l.skipped.Swap(0); n > 0 {
		line.AddAttrs(slog.Int64("skippedBefore", n))
	}
	return l.Handler.Handle(ctx, line)
}
