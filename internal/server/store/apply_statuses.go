package store

import (
	"context"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// statusUpdate is a status report that is applied, with the state of its workload.
type statusUpdate struct {
	workload *workloadState // after the report
	report   *threeport.StatusReport
	status   string
	rank     int64
	// changed reports whether the status differs from the last reported one.
	changed bool
}

// applyStatuses writes the statuses that are newer than the stored ones to the workloads and to the v0 instances.
func (a *applyTx) applyStatuses(ctx context.Context) error {
	var updates []statusUpdate
	for _, one := range sortedItems(a.items, func(i *item) (instanceKey, bool) { return i.instance, i.Status != nil }, compareInstances) {
		w := a.workloads[one.instance]
		switch {
		case one.version <= w.statusVersion:
			one.answerNotNewer(w.statusVersion)
			continue
		case w.statusVersion == 0:
			one.answerCreated()
		default:
			one.answerUpdated()
		}
		updates = append(updates, a.statusChange(w, one))
	}
	if err := a.writeStatuses(ctx, updates); err != nil {
		return err
	}
	for _, of := range instanceTables {
		if err := a.writeInstances(ctx, of.kind, of.table, updates); err != nil {
			return err
		}
	}
	return nil
}

// statusChange applies the report to the workload.
func (a *applyTx) statusChange(w *workloadState, i *item) statusUpdate {
	before, report := *w, i.Status
	status, rank := displayedStatus(report.Status)
	w.reported, w.reason, w.statusVersion, w.changedAt = report.Status, report.Reason, i.version, a.nextChangedAt(before.changedAt)
	w.since = a.since(&before, report)
	w.causeSince = a.causeSince(&before, report, w.since)
	return statusUpdate{w, report, status, int64(rank), before.changesStatus(report)}
}

// changesStatus reports whether the reported status differs from the one before.
func (w *workloadState) changesStatus(report *threeport.StatusReport) bool {
	return w.reported != report.Status
}

// since is the reported time of the last transition; without it, the old value for an unchanged status, and now for a changed one.
func (a *applyTx) since(before *workloadState, report *threeport.StatusReport) int64 {
	switch {
	case report.Since != nil:
		return report.Since.UnixMicro()
	case before.changesStatus(report) || before.since == 0:
		return a.now
	default:
		return before.since
	}
}

// oneMoment is how far the starts of a status and of its cause may be apart to be one start. The agent reports one fault in steps,
// such as ContainersNotReady and then CrashLoopBackOff, and its clock may differ from the database's.
const oneMoment = 5 * time.Second

// causeSince is the start of the cause of a status that started at since; 0 without a cause.
func (a *applyTx) causeSince(before *workloadState, report *threeport.StatusReport, since int64) int64 {
	if report.Reason == "" {
		return 0
	}
	start := a.inferredCauseSince(before, report, since)
	if report.CauseSince != nil {
		start = report.CauseSince.UnixMicro()
	}
	if d := start - since; start != 0 && max(d, -d) <= oneMoment.Microseconds() {
		return since
	}
	return start
}

// inferredCauseSince is the start of the cause for a report that does not say so: that of the status, or now. Only the reason identifies a
// cause, because the text of the same cause has counts and messages that change. A status with a later start is a new one, even if the word
// is the same: the reports of others in between were replaced during an outage. If the agent corrects the start of a status to an earlier
// time, the cause that began with it has that time too.
func (a *applyTx) inferredCauseSince(before *workloadState, report *threeport.StatusReport, since int64) int64 {
	sameReason, changed := report.Reason == before.reason, before.changesStatus(report)
	switch {
	case sameReason && !changed && before.causeSince == before.since && since < before.since:
		return since
	case sameReason:
		return before.causeSince
	case changed && since >= before.since, since > before.since+oneMoment.Microseconds():
		return since
	default: // also for a status that resumes an earlier one, after it was Unknown in between
		return a.now
	}
}

func (a *applyTx) writeStatuses(ctx context.Context, updates []statusUpdate) error {
	return a.exec(ctx, bulk{
		`UPDATE workloads SET said = x.said, saidversion = x.saidversion, reason = x.reason, cause = x.cause, since = x.since,
			causesince = x.causesince, saidat = ?,
			status = x.status, rank = x.rank, silent = FALSE, pending = x.pending, rejected = x.rejected, dropped = x.dropped,
			changedat = x.changedat FROM x WHERE workloads.type = x.type AND workloads.id = x.id`,
		[]column{
			texts("type", updates, func(v statusUpdate) string { return v.workload.kind }),
			integers("id", updates, func(v statusUpdate) int64 { return v.workload.id }),
			texts("said", updates, func(v statusUpdate) string { return v.workload.reported }),
			integers("saidversion", updates, func(v statusUpdate) int64 { return v.workload.statusVersion }),
			texts("reason", updates, func(v statusUpdate) string { return v.report.Reason }),
			texts("cause", updates, func(v statusUpdate) string { return v.report.Cause }),
			integers("since", updates, func(v statusUpdate) int64 { return v.workload.since }),
			integers("causesince", updates, func(v statusUpdate) int64 { return v.workload.causeSince }),
			texts("status", updates, func(v statusUpdate) string { return v.status }),
			integers("rank", updates, func(v statusUpdate) int64 { return v.rank }),
			integers("pending", updates, func(v statusUpdate) int64 { return v.report.Pending }),
			integers("rejected", updates, func(v statusUpdate) int64 { return v.report.Rejected }),
			integers("dropped", updates, func(v statusUpdate) int64 { return v.report.Dropped }),
			integers("changedat", updates, func(v statusUpdate) int64 { return v.workload.changedAt }),
		},
		len(updates),
		[]any{a.now},
	}, nil)
}

// writeInstances writes changed statuses to the v0 instances of one type.
func (a *applyTx) writeInstances(ctx context.Context, kind, table string, updates []statusUpdate) error {
	var changed []statusUpdate
	for _, v := range updates {
		if v.changed && v.workload.kind == kind {
			changed = append(changed, v)
		}
	}
	return a.exec(ctx, bulk{
		"UPDATE " + table + " SET status = x.status, updatedat = ? FROM x WHERE " + table + ".id = x.id",
		[]column{
			integers("id", changed, func(v statusUpdate) int64 { return v.workload.id }),
			texts("status", changed, func(v statusUpdate) string { return v.workload.reported }),
		},
		len(changed),
		[]any{a.now},
	}, nil)
}
