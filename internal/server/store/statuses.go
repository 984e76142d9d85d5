package store

import (
	"context"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// verdict is a status report that is taken, and the workload as it is after it.
type verdict struct {
	*workloadState
	*threeport.StatusReport
	status string
	rank   int64
	// differs is set if it says something else than what was said last.
	differs bool
}

// takeStatuses writes the verdicts that are newer than what is there: to the board, and to the instances of v0.
func (a *application) takeStatuses(ctx context.Context) error {
	var taken []verdict
	for _, one := range sortedBy(a.items, func(i *item) (instanceKey, bool) { return i.instance, i.Status != nil }, compareInstances) {
		w := a.workloads[one.instance]
		switch {
		case one.version <= w.saidVersion:
			one.compare(w.saidVersion)
			continue
		case w.saidVersion == 0:
			one.created()
		default:
			one.updated()
		}
		taken = append(taken, a.judge(w, one))
	}
	if err := a.writeVerdicts(ctx, taken); err != nil {
		return err
	}
	for _, of := range instanceTables {
		if err := a.writeInstances(ctx, of.kind, of.table, taken); err != nil {
			return err
		}
	}
	return nil
}

// judge brings the report to the workload. Since is when the status became what it is: as reported, else as it was if
// the status is the same, else now.
func (a *application) judge(w *workloadState, i *item) verdict {
	v := verdict{workloadState: w, StatusReport: i.Status, differs: w.said != i.Status.Status}
	status, rank := shown(i.Status.Status)
	v.status, v.rank = status, int64(rank)
	switch {
	case i.Status.Since != nil:
		w.since = i.Status.Since.UnixMicro()
	case v.differs || w.since == 0:
		w.since = a.now
	}
	w.said, w.saidVersion, w.changedAt = i.Status.Status, i.version, a.after(w.changedAt)
	return v
}

func (a *application) writeVerdicts(ctx context.Context, taken []verdict) error {
	return a.exec(ctx, bulk{
		`UPDATE workloads SET said = x.said, saidversion = x.saidversion, reason = x.reason, cause = x.cause, since = x.since, saidat = ?,
			status = x.status, rank = x.rank, silent = FALSE, pending = x.pending, rejected = x.rejected, dropped = x.dropped,
			changedat = x.changedat FROM x WHERE workloads.type = x.type AND workloads.id = x.id`,
		[]column{
			texts("type", taken, func(v verdict) string { return v.kind }),
			integers("id", taken, func(v verdict) int64 { return v.id }),
			texts("said", taken, func(v verdict) string { return v.said }),
			integers("saidversion", taken, func(v verdict) int64 { return v.saidVersion }),
			texts("reason", taken, func(v verdict) string { return v.Reason }),
			texts("cause", taken, func(v verdict) string { return v.Cause }),
			integers("since", taken, func(v verdict) int64 { return v.since }),
			texts("status", taken, func(v verdict) string { return v.status }),
			integers("rank", taken, func(v verdict) int64 { return v.rank }),
			integers("pending", taken, func(v verdict) int64 { return v.Pending }),
			integers("rejected", taken, func(v verdict) int64 { return v.Rejected }),
			integers("dropped", taken, func(v verdict) int64 { return v.Dropped }),
			integers("changedat", taken, func(v verdict) int64 { return v.changedAt }),
		},
		len(taken),
		[]any{a.now},
	}, nil)
}

// writeInstances brings new statuses to the instances of one type, for those who read v0.
func (a *application) writeInstances(ctx context.Context, kind, table string, taken []verdict) error {
	var changed []verdict
	for _, v := range taken {
		if v.differs && v.kind == kind {
			changed = append(changed, v)
		}
	}
	return a.exec(ctx, bulk{
		"UPDATE " + table + " SET status = x.status, updatedat = ? FROM x WHERE " + table + ".id = x.id",
		[]column{
			integers("id", changed, func(v verdict) int64 { return v.id }),
			texts("status", changed, func(v verdict) string { return v.said }),
		},
		len(changed),
		[]any{a.now},
	}, nil)
}
