package store

import (
	"context"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// statusUpdate is a status report that is applied, with the new state of its workload.
type statusUpdate struct {
	*workloadState
	*threeport.StatusReport
	status string
	rank   int64
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

// statusChange applies the report to the workload. Since is the reported time of the last transition; without it, the
// old value for an unchanged status, and now for a changed one.
func (a *applyTx) statusChange(w *workloadState, i *item) statusUpdate {
	v := statusUpdate{workloadState: w, StatusReport: i.Status, changed: w.reported != i.Status.Status}
	status, rank := displayedStatus(i.Status.Status)
	v.status, v.rank = status, int64(rank)
	sinceBefore := w.since
	switch {
	case i.Status.Since != nil:
		w.since = i.Status.Since.UnixMicro()
	case v.changed || w.since == 0:
		w.since = a.now
	}
	if at := i.Status.CauseSince; at != nil && i.Status.Reason != "" {
		w.causeSince = at.UnixMicro()
	} else {
		w.causeSince = a.causeSince(v, sinceBefore)
	}
	if d := w.causeSince - w.since; w.causeSince != 0 && max(d, -d) <= oneMoment.Microseconds() {
		w.causeSince = w.since
	}
	w.reported, w.reason, w.statusVersion, w.changedAt = i.Status.Status, i.Status.Reason, i.version, a.nextChangedAt(w.changedAt)
	return v
}

// oneMoment is how far the starts of a status and of its cause may be apart to be one start. The agent reports one fault in steps,
// such as ContainersNotReady and then CrashLoopBackOff, and its clock may differ from the database's.
const oneMoment = 5 * time.Second

// causeSince is when the cause became what it is, for a report that does not say so: together with the status, or now. Only the reason identifies a cause, because
// the text of the same cause has counts and messages that change. A status with a later start is a new one, even if the word is the
// same: the reports of others in between were replaced during an outage. If the agent corrects the start of a status to an earlier time,
// the cause that began with it has that time too.
func (a *applyTx) causeSince(v statusUpdate, sinceBefore int64) int64 {
	switch {
	case v.Reason == "":
		return 0
	case v.Reason == v.reason && !v.changed && v.causeSince == sinceBefore && v.since < sinceBefore:
		return v.since
	case v.Reason == v.reason:
		return v.causeSince
	case v.changed && v.since >= sinceBefore, v.since > sinceBefore+oneMoment.Microseconds():
		return v.since
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
			texts("type", updates, func(v statusUpdate) string { return v.kind }),
			integers("id", updates, func(v statusUpdate) int64 { return v.id }),
			texts("said", updates, func(v statusUpdate) string { return v.reported }),
			integers("saidversion", updates, func(v statusUpdate) int64 { return v.statusVersion }),
			texts("reason", updates, func(v statusUpdate) string { return v.Reason }),
			texts("cause", updates, func(v statusUpdate) string { return v.Cause }),
			integers("since", updates, func(v statusUpdate) int64 { return v.since }),
			integers("causesince", updates, func(v statusUpdate) int64 { return v.causeSince }),
			texts("status", updates, func(v statusUpdate) string { return v.status }),
			integers("rank", updates, func(v statusUpdate) int64 { return v.rank }),
			integers("pending", updates, func(v statusUpdate) int64 { return v.Pending }),
			integers("rejected", updates, func(v statusUpdate) int64 { return v.Rejected }),
			integers("dropped", updates, func(v statusUpdate) int64 { return v.Dropped }),
			integers("changedat", updates, func(v statusUpdate) int64 { return v.changedAt }),
		},
		len(updates),
		[]any{a.now},
	}, nil)
}

// writeInstances writes changed statuses to the v0 instances of one type.
func (a *applyTx) writeInstances(ctx context.Context, kind, table string, updates []statusUpdate) error {
	var changed []statusUpdate
	for _, v := range updates {
		if v.changed && v.kind == kind {
			changed = append(changed, v)
		}
	}
	return a.exec(ctx, bulk{
		"UPDATE " + table + " SET status = x.status, updatedat = ? FROM x WHERE " + table + ".id = x.id",
		[]column{
			integers("id", changed, func(v statusUpdate) int64 { return v.id }),
			texts("status", changed, func(v statusUpdate) string { return v.reported }),
		},
		len(changed),
		[]any{a.now},
	}, nil)
}
