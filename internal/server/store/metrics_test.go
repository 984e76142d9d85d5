package store

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// fleetMetrics are the metrics of clusters and workloads: value by name and label.
func fleetMetrics(t *testing.T, s *Store) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "controlplane_")
		if !ours {
			continue
		}
		for _, m := range family.GetMetric() {
			key := name
			for _, label := range m.GetLabel() {
				key += " " + label.GetValue()
			}
			found[key] = m.GetGauge().GetValue()
		}
	}
	return found
}

func TestFleetCollector_Metrics(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		want := map[string]float64{
			"clusters reporting": 0, "clusters silent": 0, "clusters v0": 0, "agent_delay_seconds": 0, "agent_dead_letters": 0,
			"workloads Down": 0, "workloads Error": 0, "workloads Unhealthy": 0, "workloads Unknown": 0, "workloads Reconciling": 0,
			"workloads Healthy": 0, "cluster_stored_bytes_limit": DefaultClusterBytes, "quota_rejected_reports_total": 0,
		}
		if got := fleetMetrics(t, s); !maps.Equal(got, want) {
			t.Errorf("empty: got %v, want %v", got, want)
		}

		w := newWorld(t, s)
		apply(t, s, "reporting", statusOf(w.workload, "Healthy", 1))
		apply(t, s, "mute", statusOf(w.helm, "Down", 1))
		older := threeport.Instance{Type: workload, ID: threeport.ID(create(t, s, workload, "older").ID)}
		apply(t, s, "old", statusOf(older, "Error", 1))
		recordV0Report(t, s, older)
		for cluster, delay := range map[string]float64{"reporting": 2.5, "late": 7, "mute": 900} {
			set := setOf(cluster)
			set.Agent.DelaySeconds, set.Agent.DeadLetters = delay, math.MaxInt64/2 // agents can report such values; their sum exceeds an int64
			if _, err := s.Apply(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		setLastHeartbeat(t, s, "mute", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of mute"}, Workloads: 1})

		maps.Copy(want, map[string]float64{
			"clusters reporting": 2, "clusters silent": 1, "clusters v0": 1, "agent_delay_seconds": 7, "agent_dead_letters": 1.5 * math.MaxInt64,
			"workloads Error": 1, "workloads Unknown": 1, "workloads Healthy": 1,
			"cluster_stored_bytes reporting": 0, "cluster_stored_bytes late": 0, "cluster_stored_bytes mute": 0, "cluster_stored_bytes old": 0,
		})
		if got := fleetMetrics(t, s); !maps.Equal(got, want) {
			t.Errorf("got %s\nwant %s", fmt.Sprint(got), fmt.Sprint(want))
		}
	})
}

// The label is bounded, and never lacks the cluster that stores most.
func TestFleetCollector_ManyClusters_HasTheLargest(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		for i := range maxClusterLabels {
			apply(t, s, fmt.Sprintf("cluster-%03d", i))
		}
		apply(t, s, "last", operationOf(w.helm, 0, "a", threeport.OperationAdded, 1))
		clusters := 0
		found := fleetMetrics(t, s)
		for name := range found {
			if strings.HasPrefix(name, "cluster_stored_bytes ") {
				clusters++
			}
		}
		if clusters != maxClusterLabels || found["cluster_stored_bytes last"] == 0 {
			t.Errorf("%d clusters, the last one with %v bytes, want %d and its bytes", clusters, found["cluster_stored_bytes last"], maxClusterLabels)
		}
	})
}
