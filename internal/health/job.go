package health

import (
	"fmt"
	"math"
	"time"
)

// job assesses a Job by its conditions, then by its counts. A failed pod is an attempt: the Job has more until it fails.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-termination-and-cleanup, and
// #terminal-job-conditions: FailureTarget and SuccessCriteriaMet come before Failed and Complete, while pods end.
func job(s *fields, ctx Context) Assessment {
	for _, name := range []string{"Failed", "FailureTarget"} {
		if c := s.condition(name); c.status == "True" {
			a := verdict(Down, camelReason(c.reason, "JobFailed"), s.subject()+" failed"+colon(sanitizeControllerMessage(c.message)))
			a.Since = c.since
			return a
		}
	}
	if s.condition("Complete").status == "True" {
		return Assessment{Verdict: Verdict{Status: Healthy, Reason: Completed}}
	}
	if c := s.condition("SuccessCriteriaMet"); c.status == "True" {
		return verdict(Reconciling, "SuccessCriteriaMet", s.subject()+" has done its work, and ends its pods")
	}
	if s.flag("spec", "suspend") || s.condition("Suspended").status == "True" && s.value("spec", "suspend") == nil {
		if s.table("metadata", "labels")[kueueLabel] != nil {
			return verdict(Reconciling, "Queued", s.subject()+" waits for its queue to start it")
		}
		return verdict(Healthy, "Suspended", s.subject()+" is suspended")
	}
	return jobWithin(s, ctx)
}

// kueueLabel names the queue that starts a suspended Job.
//
// Source: Kueue, https://kueue.sigs.k8s.io/docs/tasks/run/jobs/
const kueueLabel = "kueue.x-k8s.io/queue-name"

// jobWithin assesses an active Job, which may have a deadline. Its controller, if one runs, ends the Job at the deadline.
//
// Source: spec.activeDeadlineSeconds, which counts from status.startTime.
func jobWithin(s *fields, ctx Context) Assessment {
	a := jobRunning(s, ctx)
	seconds, ok := s.number("spec", "activeDeadlineSeconds")
	start := s.time("status", "startTime")
	if !ok || start.IsZero() || seconds > math.MaxInt32 {
		return a
	}
	limit := time.Duration(seconds) * time.Second
	end := start.Add(limit)
	switch {
	case !ctx.Now.Before(end) && a.Status != Down:
		a = verdict(Unhealthy, "DeadlineExceeded", s.subject()+" has run for longer than its deadline of "+formatLimit(limit)+", and has not been ended")
		a.Since = end
	case ctx.Now.Before(end) && (a.Recheck.IsZero() || end.Before(a.Recheck)):
		a.Recheck = end
	}
	return a
}

// jobRunning assesses an active Job without regard to its deadline.
//
// Source: status.{active,succeeded,failed,failedIndexes,startTime}, spec.{completions,backoffLimit}.
func jobRunning(s *fields, ctx Context) Assessment {
	active, failed := s.numberOr(0, "status", "active"), s.numberOr(0, "status", "failed")
	since := s.time("status", "startTime")
	if until := ctx.Warning.Time.Add(createRetry); ctx.Warning.Reason == failedCreate && active == 0 && ctx.Now.Before(until) {
		a := verdict(Down, failedCreate, s.subject()+" has no pod running, and its pods cannot be created"+colon(sanitizeControllerMessage(ctx.Warning.Message)))
		a.Since, a.Recheck = ctx.Warning.Time, until
		return a
	}
	if indexes := s.text("status", "failedIndexes"); indexes != "" {
		a := verdict(Unhealthy, "FailedIndexes", s.subject()+" goes on, and has failed for the indexes "+truncate(indexes, maxName))
		a.Since = since
		return a
	}
	if failed > 0 {
		message := fmt.Sprintf("%s has failed %s, and is tried again", s.subject(), times(failed))
		if limit, ok := s.number("spec", "backoffLimit"); ok {
			message += fmt.Sprintf(" until that is more than %d", limit)
		}
		a := verdict(Unhealthy, "Retrying", message)
		a.Since = since
		return a
	}
	if n, ok := s.number("spec", "parallelism"); ok && n == 0 && active == 0 {
		return verdict(Healthy, "Paused", s.subject()+" is paused: its parallelism is 0")
	}
	message := s.subject() + " runs"
	if n, ok := s.number("status", "active"); ok && n == 0 {
		message = s.subject() + " has no pod running, and has not ended"
	}
	if completions, ok := s.number("spec", "completions"); ok && completions > 1 {
		message = fmt.Sprintf("%s has %d of %d completions", s.subject(), s.numberOr(0, "status", "succeeded"), completions)
	}
	a := verdict(Reconciling, "Running", message)
	a.Since = since
	return a
}

// times writes a number of times.
func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
