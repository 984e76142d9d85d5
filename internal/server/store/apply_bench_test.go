package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/postgres"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// benchmarkDatabases runs a benchmark on a SQLite file, and on a PostgreSQL with fsync.
func benchmarkDatabases(b *testing.B, run func(b *testing.B, s *Store)) {
	b.Helper()
	on := func(b *testing.B, address string) {
		b.Helper()
		s, err := Open(b.Context(), Config{Address: address, StatementTimeout: 10 * time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		run(b, s)
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
	b.Run("sqlite", func(b *testing.B) { on(b, "sqlite:"+filepath.Join(b.TempDir(), "rows.db")) })
	if err := postgres.Find(); err != nil {
		b.Log("Not measured on PostgreSQL:", err)
		return
	}
	server, err := postgres.Start(b.Context(), postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	}()
	b.Run("postgres", func(b *testing.B) {
		address, err := server.CreateDatabase(b.Context(), fmt.Sprint("bench", created.Add(1)), "")
		if err != nil {
			b.Fatal(err)
		}
		on(b, address)
	})
}

var created atomic.Int64

// cluster has workloads, each with resources.
type cluster struct {
	uid       string
	workloads []int64
	resources []int64 // ten per workload
}

const resourcesEach = 10

func newCluster(b *testing.B, s *Store, uid string, workloads int) cluster {
	b.Helper()
	c := cluster{uid: uid}
	add := func(object string, values ...any) int64 {
		r := Resources[map[string]int{workload: 0, "WorkloadResourceInstance": 2}[object]]
		o, _, err := s.Create(b.Context(), r, append(values, make([]any, len(r.Fields)-len(values))...))
		if err != nil {
			b.Fatal(err)
		}
		return o.ID
	}
	for i := range workloads {
		id := add(workload, fmt.Sprint(uid, " workload ", i))
		c.workloads = append(c.workloads, id)
		for range resourcesEach {
			c.resources = append(c.resources, add("WorkloadResourceInstance", "{}", id))
		}
	}
	return c
}

func (c cluster) instance(i int) threeport.Instance {
	return threeport.Instance{Type: workload, ID: threeport.ID(c.workloads[i])}
}

// events are new Events of all workloads in turn.
func (c cluster) events(n int, from int64) []threeport.Report {
	reports := make([]threeport.Report, n)
	for i := range reports {
		serial := from + int64(i)
		reports[i] = threeport.Report{Instance: c.instance(i % len(c.workloads)), Version: threeport.ID(serial), Event: &threeport.EventReport{
			UID:                fmt.Sprintf("%08x-7c1d-4a55-9d1e-%012x", uint32(serial*2654435761), serial),
			ResourceInstanceID: threeport.ID(c.resources[i%len(c.workloads)*resourcesEach]),
			Involved: threeport.ObjectRef{
				Version: "v1", Kind: "Pod", Namespace: "production", Name: fmt.Sprintf("web-7887448d46-%05d", serial%50_000),
				UID: fmt.Sprintf("%08x-0000-4a55-9d1e-%012x", uint32(serial%50_000), serial%50_000),
			},
			Type: "Warning", Reason: "FailedScheduling", Count: 3, FirstTime: new(time.Now()), Time: time.Now(),
			Message: "0/12 nodes are available: 3 node(s) had untolerated taint, 9 Insufficient cpu. preemption: 0/12 nodes are available",
		}}
	}
	return reports
}

// manifest is an object of about 3 KB as an agent sends it.
func manifest(name string, version int64) json.RawMessage {
	containers := make([]any, 4)
	for i := range containers {
		containers[i] = map[string]any{
			"name": fmt.Sprint("container-", i), "image": "registry.example.com/team/service:1.27.3", "imagePullPolicy": "IfNotPresent",
			"env":       []any{map[string]any{"name": "LOG_LEVEL", "value": "info"}, map[string]any{"name": "REGION", "value": "eu-central-1"}},
			"resources": map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "256Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
			"ports":     []any{map[string]any{"containerPort": 8080, "name": "http", "protocol": "TCP"}},
			"args":      []any{"--config=/etc/service/config.yaml", "--verbose", bytes.NewBufferString(name).String()},
			"readinessProbe": map[string]any{
				"httpGet": map[string]any{"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 1,
			},
		}
	}
	doc, _ := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": name, "namespace": "production", "resourceVersion": fmt.Sprint(version), "generation": version,
			"labels": map[string]any{"app": name, "team": "payments", "app.kubernetes.io/managed-by": "threeport"},
		},
		"spec": map[string]any{
			"replicas": 3, "selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{"spec": map[string]any{"containers": containers, "restartPolicy": "Always"}},
		},
		"status": map[string]any{"availableReplicas": 3, "conditions": []any{map[string]any{"type": "Available", "status": "True", "message": "Deployment has minimum availability."}}},
	})
	return doc
}

// operations are changes of the objects of all resources.
func (c cluster) operations(n int, version int64) []threeport.Report {
	reports := make([]threeport.Report, n)
	for i := range reports {
		resource := i % len(c.resources)
		reports[i] = threeport.Report{
			Instance: c.instance(resource / resourcesEach), Version: threeport.ID(version),
			Operation: &threeport.OperationReport{
				ResourceInstanceID: threeport.ID(c.resources[resource]), Operation: threeport.OperationModified,
				Object: threeport.ObjectRef{
					Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "production", Name: fmt.Sprint("web-", resource), UID: fmt.Sprintf("%s-%036d", c.uid, resource),
				},
				Definition: manifest(fmt.Sprint("web-", resource), version),
			},
		}
	}
	return reports
}

func applyAll(b *testing.B, s *Store, uid string, reports []threeport.Report) {
	b.Helper()
	answer, err := s.Apply(b.Context(), setOf(uid, reports...))
	if err != nil {
		b.Fatal(err)
	}
	for _, item := range answer.Items {
		if item.Outcome != threeport.OutcomeCreated && item.Outcome != threeport.OutcomeUpdated {
			b.Fatalf("%+v", item)
		}
	}
}

// BenchmarkApply applies sets of 200 reports from a cluster with 20 workloads.
func BenchmarkApply(b *testing.B) {
	for _, kind := range []struct {
		name    string
		reports func(c cluster, round int64) []threeport.Report
	}{
		{"events", func(c cluster, round int64) []threeport.Report { return c.events(200, 1+round*200) }},
		{"operations", func(c cluster, round int64) []threeport.Report { return c.operations(200, 1+round) }},
	} {
		b.Run(kind.name, func(b *testing.B) {
			benchmarkDatabases(b, func(b *testing.B, s *Store) {
				b.Helper()
				c := newCluster(b, s, "one", 20)
				round := int64(0)
				for b.Loop() {
					b.StopTimer() // the number of concurrent agents
					reports := kind.reports(c, round)
					b.StartTimer()
					applyAll(b, s, c.uid, reports)
					round++
				}
				b.ReportMetric(float64(b.N)*200/b.Elapsed().Seconds(), "reports/s")
			})
		})
	}
}
