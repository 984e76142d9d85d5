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
	if before, err = s.assign(ctx, instance, func(string) string { return clusterUID }); err != nil {
		return "", err
	}
	// The agents of other clusters can no longer write these.
	if err := s.forgetDefinitions(ctx, "d.type = ? AND d.id = ? AND d.clusteruid <> ?", instance.Type, int64(instance.ID), clusterUID); err != nil {
		return "", fmt.Errorf("assign workload: %w", err)
	}
	return before, nil
}

// ClaimWorkload assigns a workload without a cluster to this one. Claimed is false if it has a cluster already.
func (s *Store) ClaimWorkload(ctx context.Context, instance threeport.Instance, clusterUID string) (claimed bool, err error) {
	before, err := s.assign(ctx, instance, func(before string) string {
		if before != "" {
			return before
		}
		return clusterUID
	})
	return err == nil && before == "", err
}

// errClusterChanged is the error of a transaction during which another one assigned the same workload.
var errClusterChanged = errors.New("the cluster of the workload changed meanwhile")

// assign sets the cluster of a workload to the result of choose, which gets the cluster before.
func (s *Store) assign(ctx context.Context, instance threeport.Instance, choose func(before string) string) (before string, err error) {
	for range maxAttempts {
		err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			before, err = s.assignInTx(ctx, tx, instance, choose)
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
func (s *Store) assignInTx(ctx context.Context, tx *sql.Tx, instance threeport.Instance, choose func(string) string) (before string, err error) {
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
	after := choose(before)
	if after == before {
		return before, nil
	}
	_, err = tx.ExecContext(ctx, d.rebind("UPDATE workloads SET clusteruid = ?, saidversion = 0, treeversion = 0, silent = FALSE, "+
		restoreReportedStatus+", "+d.changed("workloads")+" WHERE type = ? AND id = ?"),
		nullable(after), instance.Type, int64(instance.ID))
	if err == nil && instance.Type == threeport.TypeWorkloadInstance {
		err = s.forgetObjectsInTx(ctx, tx, int64(instance.ID))
	}
	return before, err
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
