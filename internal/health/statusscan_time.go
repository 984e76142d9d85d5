package health

import (
	"slices"
	"time"
)

const (
	// undatedLimit is how long a state without a start may last, from the latest news of the object.
	undatedLimit = 24 * time.Hour
	// warningLimit is how long a Warning counts against an object that says that it is under way.
	warningLimit = 15 * time.Minute
	// maxTimeEntries bounds in how many conditions times are read.
	maxTimeEntries = 100
)

// working assesses a state of work under way, with its start if that is known. A finite object takes as long as it takes.
func (v *statusScan) working(since time.Time, reason, fallback, message string) Assessment {
	reason = camelReason(reason, fallback)
	switch {
	case v.finite:
		a := verdict(Reconciling, reason, message)
		a.Since = since
		return a
	case since.IsZero():
		return v.undated(reason, message)
	}
	return pending(v.ctx, since, convergence, Unhealthy, reason, message)
}

// undated assesses work under way without a start. The state is as old as the object only if the spec never changed or
// the reason is a first step; only then is there a limit.
func (v *statusScan) undated(reason, message string) Assessment {
	a := verdict(Reconciling, reason, message)
	generation, _ := whole(v.object.value("metadata", "generation"))
	if generation > 1 && !firstSteps.hasAny(splitWords(reason)) {
		return a
	}
	return v.limited(a, undatedLimit, "a day")
}

// limited makes a verdict Unhealthy once a time has passed since the latest news of the object.
func (v *statusScan) limited(a Assessment, limit time.Duration, spelled string) Assessment {
	from := v.latestNews()
	if from.IsZero() || v.finite {
		return a
	}
	if end := from.Add(limit); v.ctx.Now.Before(end) {
		a.Recheck = end
		return a
	}
	a.Status = Unhealthy
	a.Message += ", for more than " + spelled
	if v.hasRecentWarning() {
		a.Message = v.quoteWarning(a.Message)
	}
	return a
}

// notAttained assesses a state that is not the desired one. It is bad unless the reason says that the object is under way
// or suspended, or the object is young.
func (v *statusScan) notAttained(since time.Time, reason, fallback, message string) Assessment {
	if classify(reason) == busy {
		return pending(v.ctx, since, convergence, Unhealthy, camelReason(reason, fallback), message)
	}
	if v.namesSuspension(reason) {
		return verdict(Healthy, camelReason(reason, fallback), message)
	}
	a := verdict(Unhealthy, camelReason(reason, fallback), message)
	a.Since = since
	if until, young := v.young(); !reportsFailure(reason) {
		if young {
			a.Status, a.Recheck = Reconciling, until
		} else if !since.IsZero() && until.After(since) {
			a.Since = until
		}
	}
	return a
}

// young reports whether the object has just been created, and until when it is young.
func (v *statusScan) young() (until time.Time, young bool) {
	created := v.object.created()
	until = created.Add(startup)
	return until, !created.IsZero() && v.ctx.Now.Before(until)
}

// withWarning adds a recent Warning to work under way. An old object without a start of that work is Unhealthy then.
func (v *statusScan) withWarning(a Assessment) Assessment {
	if a.Status != Reconciling || v.namesSuspension(a.Reason) || !v.hasRecentWarning() {
		return a
	}
	a.Message = v.quoteWarning(a.Message)
	if created := v.object.created(); a.Since.IsZero() && !created.IsZero() && v.ctx.Now.Sub(created) > convergence {
		a.Status = Unhealthy
	}
	return a
}

func (v *statusScan) hasRecentWarning() bool {
	w := v.ctx.Warning
	return w.Reason != "" && v.ctx.Now.Sub(w.Time) <= warningLimit
}

// quoteWarning adds the latest Warning to a message, if there is one.
func (v *statusScan) quoteWarning(message string) string {
	if w := v.ctx.Warning; w.Reason != "" {
		return quote(message+"; its latest Warning is "+w.Reason, w.Message)
	}
	return message
}

// latestNews returns the latest time in the object. Candidates are its creation, and times at the top of its status or in its
// conditions. Times in the future do not count. It is zero without a creation time.
func (v *statusScan) latestNews() time.Time {
	latest := v.object.created()
	if latest.IsZero() {
		return latest
	}
	take := func(in any) {
		table, _ := in.(map[string]any)
		for _, value := range table {
			if at, ok := moment(value); ok && at.After(latest) && !at.After(v.ctx.Now) {
				latest = at
			}
		}
	}
	status, _ := v.object.value("status").(map[string]any)
	take(status)
	conditions, _ := status["conditions"].([]any)
	for _, in := range conditions[:min(len(conditions), maxTimeEntries)] {
		take(in)
	}
	return latest
}

// endFields are fields of a status that state when a run ended. A start alone says nothing: services have one too.
var endFields = []string{
	"completionTime", "completedAt", "completionTimestamp", "finishedAt", "finishTime", "endTime", "endedAt", "terminationTime",
}

// runsToAnEnd reports whether the object is of a kind that runs to an end: by the name of the kind, else by the time of
// an end in its status. The last word of the name counts most: a ClusterBackup is a backup. A job of a stream has no end.
func (v *statusScan) runsToAnEnd() bool {
	last := lastWord(v.kind)
	switch {
	case triggerKinds.hasAny(v.kind), streamKinds.hasAny(v.kind), endlessKinds.has(last):
		return false
	case finiteKinds.has(last):
		return true
	case endlessKinds.hasAny(v.kind):
		return false
	case finiteKinds.hasAny(v.kind):
		return true
	}
	status, _ := v.object.value("status").(map[string]any)
	return slices.ContainsFunc(endFields, func(name string) bool { _, ok := status[name]; return ok })
}
