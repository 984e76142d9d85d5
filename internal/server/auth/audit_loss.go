package auth

import (
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// The limit of log lines about lost records that are not protected. A flood of requests must not become a flood of log lines.
const (
	lossesPerSecond = 1
	lossBurst       = 10
)

// lossLog logs the audit records that are not written to the store. It is safe for concurrent use.
type lossLog struct {
	log     *slog.Logger
	limiter *rate.Limiter
	skipped atomic.Int64 // lost records without a line, since the last line
}

func newLossLog(log *slog.Logger) *lossLog {
	return &lossLog{log: log, limiter: rate.NewLimiter(lossesPerSecond, lossBurst)}
}

// add logs a record: each protected one, and the others within the limit. A line has the number of skipped records before it.
func (l *lossLog) add(record store.AuditRecord, reason string) {
	if !isProtected(record) && !l.limiter.Allow() {
		l.skipped.Add(1)
		return
	}
	l.log.Error("Audit record not written", "error", reason, "at", record.At, "principal", record.Principal,
		"role", record.Role, "method", record.Method, "path", record.Path, "code", record.Code, "object", record.Object,
		"skippedBefore", l.skipped.Swap(0))
}

// flush logs the number of skipped records that no line has.
func (l *lossLog) flush() {
	if n := l.skipped.Swap(0); n > 0 {
		l.log.Error("More audit records not written", "skipped", n)
	}
}
