package store

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// workloadSeries are the series that are 1, by the values of the labels in the order of their names, and the number of those that are 0.
func workloadSeries(t *testing.T, s *Store) (ones map[string]bool, zeros int, without float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(newWorkloadCollector(s))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ones = map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				values = append(values, label.GetValue())
			}
			switch value := m.GetGauge().GetValue(); {
			case family.GetName() == "controlplane_workloads_without_metric":
				without = value
			case value == 1:
				ones[strings.Join(values, " ")] = true
			case family.GetName() == "threeport_workload_status":
				zeros++
			}
		}
	}
	return ones, zeros, without
}

func TestWorkloadCollector_StatusOfEachWorkload(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 1))
		apply(t, s, "two", statusOf(w.helm, "Down", 1))
		twin := threeport.Instance{Type: workload, ID: threeport.ID(create(t, s, workload, "web").ID)} // the name of another one
		apply(t, s, "one", statusOf(twin, "Unhealthy", 1))
		if _, err := s.Remove(t.Context(), resource(t, workload), create(t, s, workload, "deleted").ID); err != nil {
			t.Fatal(err)
		}

		s.config.WorkloadMetrics = WorkloadMetrics{Workloads: 10}
		got, zeros, _ := workloadSeries(t, s)
		want := map[string]bool{
			"threeport_workload_status name of one Healthy web": true, "threeport_workload_status name of one Unhealthy web": true,
			"threeport_workload_status name of two Down chart": true,
		}
		if !maps.Equal(got, want) || zeros != 2*len(statuses)-3 {
			t.Errorf("got %v and %d zeros, want %v", got, zeros, want)
		}

		create(t, s, helm, "late") // does not displace the others
		s.config.WorkloadMetrics = WorkloadMetrics{Workloads: 2, Labels: []string{"cluster_uid", "workload_type"}}
		got, zeros, without := workloadSeries(t, s)
		want = map[string]bool{
			"threeport_workload_status two Down HelmWorkloadInstance": true, "threeport_workload_status one Healthy WorkloadInstance": true,
		}
		if !maps.Equal(got, want) || zeros != 2*len(statuses)-2 || without != 2 {
			t.Errorf("with a limit of 2: got %v, %d zeros and %v without, want %v and 2", got, zeros, without, want)
		}
	})
}

func TestWorkloadMetrics_Validate(t *testing.T) {
	for _, tt := range []struct {
		metrics WorkloadMetrics
		want    string
	}{
		{WorkloadMetrics{}, ""},
		{WorkloadMetrics{Workloads: MaxWorkloadMetrics, Labels: []string{"workload_id", "workload"}}, ""},
		{WorkloadMetrics{Workloads: -1}, "metrics of -1 workloads: use 0 to 20000"},
		{WorkloadMetrics{Workloads: MaxWorkloadMetrics + 1}, "use 0 to 20000"},
		{WorkloadMetrics{Labels: []string{"reason"}}, `label "reason" of the metrics of workloads: use some of cluster, cluster_uid, workload, workload_id, workload_type, each once`},
		{WorkloadMetrics{Labels: []string{"workload", "workload"}}, "each once"},
		{WorkloadMetrics{Labels: []string{""}}, `label ""`},
	} {
		err := tt.metrics.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.metrics, err, tt.want)
		}
	}
}
