package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// ClaimPolicy is what a report on a workload without a cluster does.
type ClaimPolicy int

const (
	// ClaimsAllowed assigns the workload to the cluster of the report.
	ClaimsAllowed ClaimPolicy = iota
	// ClaimsRefused rejects the report: an administrator has to assign the workload first.
	ClaimsRefused
)

// NotAssigned is the text of a refusal: the instance does not belong to the cluster of an agent. It names the command that
// assigns it. owner is the cluster of the instance; empty if it has none. The ID of a foreign instance is not in the text: an
// agent need not know it to ask for one of its rows.
func NotAssigned(instance threeport.Instance, owner, agentCluster string) string {
	if owner != "" {
		return "the instance belongs to another cluster; an administrator moves it: controlplane workload assign --cluster " + agentCluster + " TYPE ID"
	}
	return fmt.Sprintf("%s %d is not assigned to a cluster; an administrator assigns it: controlplane workload assign --cluster %s %s %d",
		instance.Type, int64(instance.ID), agentCluster, instance.Type, int64(instance.ID))
}

// AssignWorkload assigns a workload to a cluster, which need not have reported yet. An empty UID releases the workload. It
// returns the cluster of the workload before, or [ErrNotFound]. Assigning the same cluster again changes nothing.
//
// Versions of two clusters are not comparable, so a change of the cluster forgets the stored versions. If it is interrupted, a repeated
// call forgets the rest.
func (s *Store) AssignWorkload(ctx context.Context, instance threeport.Instance, clusterUID string) (before string, err error) {
	if before, err := s.InstanceCluster(ctx, instance.Type, int64(instance.ID)); err == nil && before != clusterUID && instance.Type == threeport.TypeWorkloadInstance {
		if err := s.forgetObjects(ctx, "r.workloadinstanceid = ?", int64(instance.ID)); err != nil {
			return "", fmt.Errorf("assign workload: %w", err)
		}
	}
	if before, err = s.assign(ctx, instance, clusterUID); err != nil {
		return "", err
	}
	// The agents of other clusters can no longer write these.
	if err := s.forgetDefinitions(ctx, "d.type = ? AND d.id = ? AND d.clusteruid <> ?", instance.Type, int64(instance.ID), clusterUID); err != nil {
		return "", fmt.Errorf("assign workload: %w", err)
	}
	return before, nil
}

// Claim assigns instances without a cluster in the transaction of a write, so only if the write succeeds.
type Claim struct {
	ClusterUID string
	// Instances are those to assign. If another cluster has one, the write fails with a [ClaimError]. Those of this cluster stay.
	Instances []threeport.Instance
	// Claimed are the instances that the write assigned. It sets them.
	Claimed []threeport.Instance
}

// ClaimError is the error of a write that claims an instance of another cluster. It assigned nothing. The detail is that of [NotAssigned].
type ClaimError struct{ Detail string }

// Error is the detail.
func (e *ClaimError) Error() string { return e.Detail }

// claimInTx assigns the instances of a claim. It locks them in the order of report sets.
func (s *Store) claimInTx(ctx context.Context, tx *sql.Tx, c *Claim) error {
	c.Claimed = nil // those of an earlier attempt
	ordered := slices.SortedFunc(slices.Values(c.Instances), func(a, b threeport.Instance) int {
		return compareInstances(instanceKey{a.Type, int64(a.ID)}, instanceKey{b.Type, int64(b.ID)})
	})
	for _, instance := range ordered {
		switch owner, err := s.clusterInTx(ctx, tx, instance, s.dialect.locking("i, w")); {
		case err != nil:
			return err
		case owner == c.ClusterUID:
			continue
		case owner != "":
			return &ClaimError{NotAssigned(instance, owner, c.ClusterUID)}
		}
		if err := s.setCluster(ctx, tx, instance, c.ClusterUID); err != nil {
			return fmt.Errorf("claim workload: %w", err)
		}
		c.Claimed = append(c.Claimed, instance)
	}
	return nil
}

// errClusterChanged is the error of a transaction during which another one assigned the same workload.
var errClusterChanged = errors.New("the cluster of the workload changed meanwhile")

// assign sets the cluster of a workload, and returns the one before.
func (s *Store) assign(ctx context.Context, instance threeport.Instance, clusterUID string) (before string, err error) {
	for range maxAttempts {
		err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			before, err = s.assignInTx(ctx, tx, instance, clusterUID)
			return err
		})
		if !errors.Is(err, errClusterChanged) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("assign workload: %w", err)
	}
	return before, nil
}

// assignInTx locks the cluster of the workload before the workload, as report sets do.
func (s *Store) assignInTx(ctx context.Context, tx *sql.Tx, instance threeport.Instance, clusterUID string) (before string, err error) {
	if before, err = s.clusterInTx(ctx, tx, instance, ""); err != nil {
		return "", err
	}
	d := s.dialect
	if before != "" {
		if _, err := tx.ExecContext(ctx, d.rebind("UPDATE clusters SET "+d.changed("clusters")+" WHERE uid = ?"), before); err != nil {
			return "", err
		}
	}
	switch locked, err := s.clusterInTx(ctx, tx, instance, d.locking("i, w")); {
	case err != nil:
		return "", err
	case locked != before:
		return "", errClusterChanged
	}
	if clusterUID == before {
		return before, nil
	}
	return before, s.setCluster(ctx, tx, instance, clusterUID)
}

// setCluster writes another cluster of a workload that the transaction has locked. It forgets the versions that the cluster before has stored.
func (s *Store) setCluster(ctx context.Context, tx *sql.Tx, instance threeport.Instance, clusterUID string) error {
	_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE workloads SET clusteruid = ?, saidversion = 0, treeversion = 0, silent = FALSE, "+
		restoreReportedStatus+", "+s.dialect.changed("workloads")+" WHERE type = ? AND id = ?"),
		nullable(clusterUID), instance.Type, int64(instance.ID))
	if err == nil && instance.Type == threeport.TypeWorkloadInstance {
		err = s.forgetObjectsInTx(ctx, tx, int64(instance.ID))
	}
	return err
}

// nullable is a text that is NULL if it is empty.
func nullable(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

// clusterInTx reads the cluster of a workload that is not deleted.
func (s *Store) clusterInTx(ctx context.Context, tx *sql.Tx, instance threeport.Instance, lock string) (string, error) {
	i := slices.IndexFunc(instanceTables, func(of instanceTable) bool { return of.kind == instance.Type })
	if i < 0 {
		return "", ErrNotFound
	}
	var cluster sql.NullString
	err := tx.QueryRowContext(ctx, s.dialect.rebind("SELECT w.clusteruid FROM "+instanceTables[i].table+" i JOIN workloads w ON w.id = i.id "+
		"WHERE w.type = ? AND w.id = ? AND i.deletedat IS NULL AND w.deletedat IS NULL"+lock), instance.Type, int64(instance.ID)).Scan(&cluster)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return cluster.String, err
}
