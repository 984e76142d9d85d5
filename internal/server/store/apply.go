package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Apply applies a set of reports and returns one answer per report, in the order of the set. The answered changes are
// durable when Apply returns.
//
// A report is applied only if it is newer than the stored version of its key. So a set, or a part of it, can be applied
// again at any time, also concurrently: nothing is duplicated or reverted. An invalid report is rejected; the others
// are applied. The error is a [SetError] if the whole set is invalid. After any other error the set may be sent again.
//
// The first report on a workload without a cluster assigns it to the cluster of the set: see [Store.ApplyAs].
func (s *Store) Apply(ctx context.Context, set threeport.ReportSet) (threeport.ReportSetAnswer, error) {
	answer, _, err := s.ApplyAs(ctx, set, ClaimsAllowed)
	return answer, err
}

// ApplyAs is Apply with a policy for workloads without a cluster. It returns the workloads that it assigned.
func (s *Store) ApplyAs(ctx context.Context, set threeport.ReportSet, policy ClaimPolicy) (threeport.ReportSetAnswer, []threeport.Instance, error) {
	if s.config.StrictV0 {
		return threeport.ReportSetAnswer{}, nil, ErrNoReportSets
	}
	if err := validateSet(set); err != nil {
		return threeport.ReportSetAnswer{}, nil, err
	}
	set.Agent.ClusterName = cleanName(set.Agent.ClusterName)
	answer := threeport.ReportSetAnswer{Items: make([]threeport.ReportAnswer, len(set.Reports))}
	release, err := s.applying.acquire(ctx, set.Agent.ClusterUID)
	if err != nil {
		return threeport.ReportSetAnswer{}, nil, fmt.Errorf("wait for another set of the cluster: %w", err)
	}
	of := &reportingAgent{Agent: &set.Agent, policy: policy}
	defer func() { release(of.took) }()
	begin := time.Now()
	chunks, err := s.chunksOf(ctx, set.Agent.ClusterUID, validItems(set.Reports, answer.Items, begin))
	of.took += time.Since(begin)
	for _, c := range chunks { // at least one: the heartbeat is recorded also without items
		if err = s.applyChunk(ctx, of, c); err != nil {
			break
		}
	}
	if err == nil && of.returned {
		begin := time.Now()
		err = s.endSilence(ctx, of.ClusterUID, begin.Add(maxRestoreTime))
		of.took += time.Since(begin)
	}
	if err != nil {
		return threeport.ReportSetAnswer{}, of.claimed, fmt.Errorf("apply report set: %w", err)
	}
	return answer, of.claimed, nil
}

// reportingAgent is the agent of a report set, with the workloads that the set assigned to its cluster. took is the time of its reads
// and transactions, without the wait for a connection of the latter.
type reportingAgent struct {
	*threeport.Agent
	policy  ClaimPolicy
	claimed []threeport.Instance
	took    time.Duration
	// returned is true if the silence of the cluster is to end.
	returned bool
}

// applyItems applies the items in one transaction, and what that leaves unfinished in further ones. If the database rejects their data,
// it splits the items in halves until only the rejected report is left.
func (s *Store) applyItems(ctx context.Context, agent *reportingAgent, items []*item) error {
	applied, err := s.applyInTx(ctx, agent, items)
	if isRejectedData(err) { // may be a collision of row IDs between two processes
		applied, err = s.applyInTx(ctx, agent, items)
	}
	switch {
	case err == nil:
		agent.claimed = append(agent.claimed, applied.claimed...)
		agent.returned = applied.hasReturned()
		s.eventGrowth.add(applied.newEvents)
		s.overQuota.Add(float64(applied.overQuota))
		// The statements are for all sets: they do not depend on the client of this one.
		if err := s.prepared.prepare(context.WithoutCancel(ctx), s.write); err != nil || len(applied.unfinished) == 0 {
			return err
		}
		return s.applyItems(ctx, agent, applied.itemsWithRest())
	case !isRejectedData(err) || len(items) == 0: // only the heartbeat was written
		return err
	case len(items) == 1:
		items[0].reject(threeport.ProblemInvalid, "the database rejects this report: "+rejectionCode(err))
		return nil
	}
	half := len(items) / 2
	if err := s.applyItems(ctx, agent, items[:half]); err != nil {
		return err
	}
	return s.applyItems(ctx, agent, items[half:])
}

// applyInTx applies the items in one transaction.
func (s *Store) applyInTx(ctx context.Context, agent *reportingAgent, items []*item) (*applyTx, error) {
	var applied *applyTx
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		begin := time.Now()
		defer func() { agent.took += time.Since(begin) }()
		applied = &applyTx{store: s, tx: tx, agent: agent, items: items}
		return applied.run(ctx)
	})
	return applied, err
}

// applyTx is one attempt to apply items in a transaction.
//
// The transactions of one cluster are serialized, because each begins with an UPDATE of the cluster's row. So data that
// belongs to one cluster needs no other lock.
//
// A fixed lock order excludes deadlocks. First comes the cluster's row, then the v0 instances by type and ID, each with
// its workloads row, as in v0 writes. All other rows follow by key.
type applyTx struct {
	store *Store
	tx    *sql.Tx
	agent *reportingAgent
	items []*item
	// superseded items have a newer item of the same key; their answers follow from it.
	superseded []supersession

	// now is the start of the transaction by the database's clock, in microseconds.
	now int64
	// wasSilent reports whether the cluster was marked as silent, and returnedAt is when it reported again, in microseconds.
	wasSilent  bool
	returnedAt int64
	stored     storedBytes
	// overQuota counts the reports that were rejected because of the quota.
	overQuota int
	workloads map[instanceKey]*workloadState
	resources map[int64]*resourceRow
	// newEvents counts the added and changed Events by workload.
	newEvents map[instanceKey]int
	// claimed are the workloads that the transaction assigned to the cluster.
	claimed []threeport.Instance
	// unfinished are the items that the next transaction continues.
	unfinished []unfinishedItem
}

// unfinishedItem is an item that a transaction did not answer. rest is the unwritten part of its tree; nil if the item only waits for the
// answer of the one that supersedes it.
type unfinishedItem struct {
	item *item
	rest *treeWrite
}

func (a *applyTx) run(ctx context.Context) error {
	for _, step := range []struct {
		doing string
		do    func(context.Context) error
	}{
		{"record heartbeat", a.recordHeartbeat},
		{"load workloads", a.loadWorkloads},
		{"load resources", a.loadResources},
		{"drop superseded reports", a.dropSuperseded},
		{"apply operations", a.applyOperations},
		{"apply events", a.applyEvents},
		{"apply trees", a.applyTrees},
		{"claim workloads", a.claimWorkloads},
		{"apply statuses", a.applyStatuses},
		{"record stored bytes", a.recordStoredBytes},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.doing, err)
		}
	}
	for _, s := range a.superseded {
		if s.by.isAnswered() {
			s.answerOld()
		} else {
			a.unfinished = append(a.unfinished, unfinishedItem{item: s.old})
		}
	}
	return nil
}

// itemsWithRest returns the unfinished items for the next transaction, after this one was committed.
func (a *applyTx) itemsWithRest() []*item {
	items := make([]*item, len(a.unfinished))
	for n, u := range a.unfinished {
		items[n], u.item.rest = u.item, u.rest
	}
	return items
}

// dropSuperseded keeps the newest item of each key. It ignores rejected items, which supersede none.
func (a *applyTx) dropSuperseded(context.Context) error {
	a.items, a.superseded = newestByKey(slices.DeleteFunc(slices.Clone(a.items), (*item).isRejected))
	return nil
}

// exec runs a bulk statement and calls row for each returned row.
func (a *applyTx) exec(ctx context.Context, b bulk, row func(scanner) error) error {
	return a.store.execBulk(ctx, a.tx, b, row)
}

// nextChangedAt is the new changedat of a row: always above the old one, even if the clock was set back.
func (a *applyTx) nextChangedAt(changedAt int64) int64 { return max(a.now, changedAt+1) }
