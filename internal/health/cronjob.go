package health

import "time"

// scheduleDelay is how long the controller of CronJobs may take to create a Job that is due.
const scheduleDelay = 2 * time.Minute

// cronJob assesses a CronJob by its last run. The pods of an active run are among its dependents.
//
// Source: status.{active,lastScheduleTime,lastSuccessfulTime}: the controller writes the end of a run in the same
// update that takes it from the active ones.
func cronJob(s *fields, ctx Context) Assessment {
	last, succeeded := s.time("status", "lastScheduleTime"), s.time("status", "lastSuccessfulTime")
	active := s.list("status", "active")
	if s.flag("spec", "suspend") {
		return verdict(Healthy, "Suspended", s.subject()+" is suspended")
	}
	if len(active) == 0 && !last.IsZero() && succeeded.Before(last) {
		a := verdict(Unhealthy, "LastRunFailed", "the last run of "+s.subject()+" has not succeeded")
		if succeeded.IsZero() {
			a.Message += ", and none has before"
		}
		a.Since = last
		return a
	}
	return cronJobDue(s, ctx, last, len(active) > 0)
}

// cronJobDue assesses a CronJob whose last run succeeded or is active, by its next run.
//
// Source: spec.{schedule,timeZone,concurrencyPolicy,startingDeadlineSeconds}. The controller counts from the creation if
// nothing was scheduled yet.
func cronJobDue(s *fields, ctx Context, last time.Time, runs bool) Assessment {
	schedule, err := parseSchedule(s.text("spec", "schedule"), s.text("spec", "timeZone"))
	if err != nil {
		s.note("spec", "schedule")
		return verdict(Unknown, "Malformed", s.subject()+" has a malformed schedule"+colon(err.Error()))
	}
	since := last
	if since.IsZero() {
		since = s.created()
	}
	if since.IsZero() || runs && s.text("spec", "concurrencyPolicy") == "Forbid" {
		return healthy
	}
	// After a change of the schedule or the end of a suspension, the controller starts only the latest of the missed runs.
	due := schedule.next(since)
	if due.IsZero() { // the schedule never matches
		return healthy
	}
	late := due.Add(scheduleDelay + time.Duration(min(s.numberOr(0, "spec", "startingDeadlineSeconds"), 86400))*time.Second)
	if ctx.Now.Before(late) {
		return Assessment{Verdict: Verdict{Status: Healthy}, Recheck: late}
	}
	a := verdict(Unhealthy, "MissedSchedule", s.subject()+" has not run when it was due")
	a.Since = late
	return a
}
