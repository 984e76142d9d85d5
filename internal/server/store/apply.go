package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Apply takes a set of reports. What it answers as taken is on disk, whatever happens then to this process or to the
// database; each report is answered on its own, in the order of the set.
//
// A report counts if it is newer than what is there for its key, so the same set may be applied again, in whole or in
// part, at once with others or later: nothing is doubled, and nothing turned back. One that is wrong is rejected and
// keeps no other from being taken. The error is a [SetError] if the set is wrong as a whole; any other means that the
// database did not do it, and that the set is to be sent again.
func (s *Store) Apply(ctx context.Context, set threeport.ReportSet) (threeport.ReportSetAnswer, error) {
	if s.config.StrictV0 {
		return threeport.ReportSetAnswer{}, ErrNoReportSets
	}
	if err := validateSet(set); err != nil {
		return threeport.ReportSetAnswer{}, err
	}
	answer := threeport.ReportSetAnswer{Items: make([]threeport.ReportAnswer, len(set.Reports))}
	if err := s.applyItems(ctx, &set.Agent, validItems(set.Reports, answer.Items, time.Now())); err != nil {
		return threeport.ReportSetAnswer{}, fmt.Errorf("apply report set: %w", err)
	}
	return answer, nil
}

// applyItems applies items in one transaction, or, if the database refuses something in it that no repeat will change,
// each half of them in its own: the culprit is rejected in the end, and all others are taken.
func (s *Store) applyItems(ctx context.Context, agent *threeport.Agent, items []*item) error {
	made, err := s.applyInTx(ctx, agent, items)
	if isRejectedData(err) { // once may be by chance: an ID that another process took in the same 10 µs
		made, err = s.applyInTx(ctx, agent, items)
	}
	switch {
	case err == nil:
		s.eventGrowth.add(made.newEvents)
		return s.prepared.prepare(ctx, s.write)
	case !isRejectedData(err) || len(items) == 0: // the heartbeat alone
		return err
	case len(items) == 1:
		items[0].reject(threeport.ProblemInvalid, "the database cannot keep this report")
		return nil
	}
	half := len(items) / 2
	if err := s.applyItems(ctx, agent, items[:half]); err != nil {
		return err
	}
	return s.applyItems(ctx, agent, items[half:])
}

// transactItems applies items in one transaction.
func (s *Store) applyInTx(ctx context.Context, agent *threeport.Agent, items []*item) (*applyTx, error) {
	var made *applyTx
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		made = &applyTx{store: s, tx: tx, agent: agent, items: items}
		return made.run(ctx)
	})
	return made, err
}

// application is one try to apply items in a transaction: what it has read, and what it decides.
//
// All applications of one cluster take turns, because each begins with a write of the cluster's row. So what is a
// cluster's alone is read, compared and written without another lock.
//
// Locks are taken in one order, which excludes deadlocks: the cluster's row; the instances' rows of v0, by type and ID,
// each with the board's, as writes of v0 take them too; then the others, by their keys.
type applyTx struct {
	store *Store
	tx    *sql.Tx
	agent *threeport.Agent
	items []*item
	// superseded do not count, for a newer one of the items: their answers follow from its.
	superseded []supersession

	// now is when it began, by the database's clock, in microseconds.
	now int64
	// wasSilent is set if the cluster had fallen silent.
	wasSilent bool
	workloads map[instanceKey]*workloadState
	resources map[int64]*resourceRow
	// grown is how many Events were added.
	newEvents map[instanceKey]int
}

func (a *applyTx) run(ctx context.Context) error {
	for _, step := range []struct {
		doing string
		do    func(context.Context) error
	}{
		{"hear of cluster", a.recordHeartbeat},
		{"find workloads", a.loadWorkloads},
		{"find resources", a.loadResources},
		{"choose the newest", a.dropSuperseded},
		{"take operations", a.applyOperations},
		{"take events", a.applyEvents},
		{"claim workloads", a.claimWorkloads},
		{"take statuses", a.applyStatuses},
		{"take trees", a.applyTrees},
		{"end silence", a.endSilence},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.doing, err)
		}
	}
	for _, old := range a.superseded {
		old.answerOld()
	}
	return nil
}

// chooseNewest leaves the newest item of each key, of those that may be taken: one that is rejected supersedes none.
func (a *applyTx) dropSuperseded(context.Context) error {
	a.items, a.superseded = newestByKey(slices.DeleteFunc(slices.Clone(a.items), (*item).isRejected))
	return nil
}

// exec runs a statement about many rows; row is called for each that it returns.
func (a *applyTx) exec(ctx context.Context, b bulk, row func(scanner) error) error {
	return a.store.execBulk(ctx, a.tx, b, row)
}

// after is when a row that was changed at a time is changed now: later, whatever the clock says.
func (a *applyTx) nextChangedAt(changedAt int64) int64 { return max(a.now, changedAt+1) }
