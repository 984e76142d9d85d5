package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// assign assigns a workload, and checks the cluster that it had before.
func assign(t *testing.T, s *Store, of threeport.Instance, cluster, wantBefore string) {
	t.Helper()
	if before, err := s.AssignWorkload(t.Context(), of, cluster); before != wantBefore || err != nil {
		t.Fatalf("assigned to %q, before %q, %v; want %q before", cluster, before, err, wantBefore)
	}
}

// The objects of another cluster have lower versions, and its clock may be behind.
func TestAssignWorkload_OtherCluster_ResetsVersions(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		assign(t, s, w.workload, "old", "") // before its first report
		reports := func(version int64) []threeport.Report {
			return []threeport.Report{
				statusOf(w.workload, "Healthy", version), operationOf(w.workload, w.resource, "a", threeport.OperationAdded, version),
				treeOf(w.workload, version, nodeOf("a", "a", "Healthy")),
			}
		}
		if got, want := apply(t, s, "new", reports(60)...), []string{"forbidden", "forbidden", "forbidden"}; !slices.Equal(got, want) {
			t.Errorf("another cluster: %v, want %v", got, want)
		}
		apply(t, s, "old", reports(50)...)
		setLastHeartbeat(t, s, "old", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of old"}, Workloads: 1})
		wantTold := expectNoChange(t, s)
		assign(t, s, w.workload, "new", "old")
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 0, shown Healthy 5, silent false, Reason: cause 50"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		wantTold()
		if got, want := apply(t, s, "new", reports(4)...), []string{"created", "created", "created"}; !slices.Equal(got, want) {
			t.Errorf("the new cluster: %v, want %v", got, want)
		}
		assign(t, s, w.workload, "new", "new") // keeps the versions
		if got, want := apply(t, s, "new", reports(3)...), []string{"stale 4", "stale 4", "stale 4"}; !slices.Equal(got, want) {
			t.Errorf("older reports after the same assignment: %v, want %v", got, want)
		}
		if got, want := apply(t, s, "old", reports(70)...), []string{"forbidden", "forbidden", "forbidden"}; !slices.Equal(got, want) {
			t.Errorf("the old cluster: %v, want %v", got, want)
		}
		assign(t, s, w.workload, "", "new")
		assign(t, s, w.workload, "", "")
	})
}

// A stolen credential may report the highest version, or a deletion. Both are final until the workload or its cluster is reset.
func TestDefinition_HighestVersionOrDeletion_EndsWithReset(t *testing.T) {
	resets := map[string]func(t *testing.T, s *Store, of threeport.Instance){
		"moved away and back": func(t *testing.T, s *Store, of threeport.Instance) {
			t.Helper()
			assign(t, s, of, "elsewhere", "one")
			assign(t, s, of, "one", "elsewhere")
		},
		"released and assigned": func(t *testing.T, s *Store, of threeport.Instance) {
			t.Helper()
			assign(t, s, of, "", "one")
			assign(t, s, of, "one", "")
		},
		"cluster deleted": func(t *testing.T, s *Store, of threeport.Instance) {
			t.Helper()
			deleteCluster(t, s, "one", 1)
			assign(t, s, of, "one", "")
		},
	}
	for name, reset := range resets {
		t.Run(name, func(t *testing.T) {
			forEachDatabase(t, func(t *testing.T, s *Store) {
				t.Helper()
				w := newWorld(t, s)
				stolen := []threeport.Report{
					operationOf(w.workload, w.resource, "a", threeport.OperationModified, math.MaxInt64),
					operationOf(w.workload, w.resource, "b", threeport.OperationDeleted, 1),
				}
				honest := []threeport.Report{
					operationOf(w.workload, w.resource, "a", threeport.OperationModified, 1000),
					operationOf(w.workload, w.resource, "b", threeport.OperationModified, 1000),
				}
				apply(t, s, "one", stolen...)
				if got, want := apply(t, s, "one", honest...), []string{fmt.Sprint("stale ", int64(math.MaxInt64)), "stale 1"}; !slices.Equal(got, want) {
					t.Fatalf("before the reset: %v, want %v", got, want)
				}
				reset(t, s, w.workload)
				apply(t, s, "one", honest...)
				for _, uid := range []string{"a", "b"} {
					want := fmt.Sprintf("1000 %s", honest[0].Operation.Operation)
					d, err := s.Definition(t.Context(), "one", uid)
					if got := fmt.Sprintf("%d %s", d.Version, d.Operation); err != nil || got != want {
						t.Errorf("the definition of %s is %s, %v; want %s", uid, got, err, want)
					}
				}
			})
		})
	}
}

func TestAssignWorkload_NoWorkload_IsNotFound(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		if _, err := s.Remove(t.Context(), resource(t, workload), int64(w.workload.ID)); err != nil {
			t.Fatal(err)
		}
		for _, of := range []threeport.Instance{w.workload, {Type: workload, ID: 7}, {Type: "WorkloadEvent", ID: w.helm.ID}} {
			if _, err := s.AssignWorkload(t.Context(), of, "c"); !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v: %v, want %v", of, err, ErrNotFound)
			}
		}
	})
}

func TestApplyAs_ClaimsRefused_RejectsWorkloadsWithoutCluster(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		assign(t, s, w.helm, "c", "")
		set := setOf("c", statusOf(w.workload, "Healthy", 1), statusOf(w.helm, "Healthy", 1), eventOf(w.workload, "e", 1))
		answer, claimed, err := s.ApplyAs(t.Context(), set, ClaimsRefused)
		if got, want := outcomes(answer), []string{"forbidden", "created", "forbidden"}; err != nil || !slices.Equal(got, want) || len(claimed) > 0 {
			t.Errorf("refused: %v, claimed %v, %v; want %v and no claim", got, claimed, err, want)
		}
		if uid, err := s.InstanceCluster(t.Context(), workload, int64(w.workload.ID)); uid != "" || err != nil {
			t.Errorf("the workload belongs to %q, %v, want none", uid, err)
		}
		answer, claimed, err = s.ApplyAs(t.Context(), set, ClaimsAllowed)
		if want := []threeport.Instance{w.workload}; err != nil || !slices.Equal(claimed, want) {
			t.Errorf("allowed: %v, claimed %v, %v; want %v", outcomes(answer), claimed, err, want)
		}
	})
}

// Exactly one of several clusters gets a workload, whether it claims it by a report set or through v0.
func TestClaim_Concurrent_OneClusterWins(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		var mu sync.Mutex
		var winners []string
		var all sync.WaitGroup
		for _, cluster := range []string{"a", "b", "c", "d"} {
			all.Go(func() {
				var claimed []threeport.Instance
				var err error
				if cluster > "b" {
					_, claimed, err = s.ApplyAs(t.Context(), setOf(cluster, statusOf(w.workload, "Healthy", 1)), ClaimsAllowed)
				} else {
					claim := &Claim{ClusterUID: cluster, Instances: []threeport.Instance{w.workload}}
					_, err = s.UpdateFor(t.Context(), resource(t, workload), int64(w.workload.ID), []any{nil, "Down", nil}, claim)
					claimed = claim.Claimed
					if _, refused := errors.AsType[*ClaimError](err); refused {
						err, claimed = nil, nil
					}
				}
				if err != nil {
					t.Error(err)
				}
				if len(claimed) > 0 {
					mu.Lock()
					defer mu.Unlock()
					winners = append(winners, cluster)
				}
			})
		}
		all.Wait()
		uid, err := s.InstanceCluster(t.Context(), workload, int64(w.workload.ID))
		if err != nil || len(winners) != 1 || winners[0] != uid {
			t.Errorf("%q claimed the workload, which belongs to %q, %v; want one cluster", winners, uid, err)
		}
	})
}

// A write claims all of its instances, or none.
func TestClaim_RefusedWrite_ClaimsNothing(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		free := threeport.Instance{Type: workload, ID: threeport.ID(create(t, s, workload, "free").ID)}
		assign(t, s, w.helm, "other", "")
		post := func(of threeport.ID, instances ...threeport.Instance) (claimed []threeport.Instance, created bool, err error) {
			claim := &Claim{ClusterUID: "c", Instances: instances}
			values := []any{"event", "Normal", "r", "m", int64(1), int64(of), nil, nil}
			_, created, err = s.CreateFor(t.Context(), resource(t, "WorkloadEvent"), values, "", claim)
			return claim.Claimed, created, err
		}
		expectFree := func(reason string) {
			t.Helper()
			if uid, err := s.InstanceCluster(t.Context(), workload, int64(w.workload.ID)); uid != "" || err != nil {
				t.Errorf("%s: the workload belongs to %q, %v, want no cluster", reason, uid, err)
			}
		}
		_, _, err := post(w.workload.ID, w.helm, w.workload)
		if _, refused := errors.AsType[*ClaimError](err); !refused {
			t.Errorf("a claim of another cluster's instance: %v, want a ClaimError", err)
		}
		expectFree("after a claim of another cluster's instance")
		if _, _, err := post(12345, w.workload); !errors.Is(err, ErrReference) {
			t.Errorf("an Event of a missing instance: %v, want %v", err, ErrReference)
		}
		expectFree("after an Event of a missing instance")
		claimed, created, err := post(w.workload.ID, free, w.workload, free)
		if want := []threeport.Instance{w.workload, free}; !slices.Equal(claimed, want) || !created || err != nil {
			t.Errorf("a new Event: claimed %v, created %t, %v; want %v", claimed, created, err, want)
		}
		assign(t, s, w.workload, "", "c")
		if claimed, created, err := post(w.workload.ID, w.workload); len(claimed) > 0 || created || err != nil {
			t.Errorf("an existing Event: claimed %v, created %t, %v; want no claim", claimed, created, err)
		}
		expectFree("after an existing Event")
	})
}

// A workload moves between clusters while both report it.
func TestAssignWorkload_DuringReports_HasNoDeadlock(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "a")
		apply(t, s, "b")
		var all sync.WaitGroup
		for _, cluster := range []string{"a", "b"} {
			all.Go(func() {
				for version := range int64(20) {
					if _, _, err := s.ApplyAs(t.Context(), setOf(cluster, statusOf(w.workload, "Healthy", version+1), statusOf(w.helm, "Down", version+1)), ClaimsRefused); err != nil {
						t.Errorf("report of %s: %v", cluster, err)
					}
				}
			})
			all.Go(func() {
				for range 20 {
					for _, of := range []threeport.Instance{w.helm, w.workload} {
						if _, err := s.AssignWorkload(t.Context(), of, cluster); err != nil {
							t.Errorf("assignment to %s: %v", cluster, err)
						}
					}
				}
			})
		}
		all.Wait()
	})
}

func TestCreateFor_AssignsTheInstance(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, object := range []string{threeport.TypeWorkloadInstance, threeport.TypeHelmWorkloadInstance} {
			row, created, err := s.CreateFor(t.Context(), resource(t, object), []any{"web", nil, nil}, "c", nil)
			if err != nil || !created {
				t.Fatal(created, err)
			}
			if uid, err := s.InstanceCluster(t.Context(), object, row.ID); uid != "c" || err != nil {
				t.Errorf("%s belongs to %q, %v, want c", object, uid, err)
			}
		}
	})
}
