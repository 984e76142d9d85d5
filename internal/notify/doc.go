// Package notify delivers what the outbox holds: it takes reports, sends each through a [Sender], and
// settles it by the outcome. A report is sent again after a transient failure, with full-jitter exponential
// backoff or when the control plane says; one that the control plane refuses for good is given up, counted
// and shown.
//
// [Notifier.Run] owns the goroutines: it returns when all of them have ended, which is after what the
// outbox holds was flushed, or the time for that is over.
package notify
