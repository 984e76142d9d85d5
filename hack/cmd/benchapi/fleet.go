package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	workloadsOfAgent = 10
	podsOfWorkload   = 20
	definitionBytes  = 2500
)

// workload is a workload of an agent.
type workload struct {
	instance  threeport.Instance
	resources []threeport.ID
}

// agent is an agent of the fleet.
type agent struct {
	number    int
	cluster   string
	workloads []workload
	clock     atomic.Int64 // of versions
}

func (a *agent) version() threeport.ID { return threeport.ID(a.clock.Add(1)) }

// set returns a report set of the agent.
func (a *agent) set(reports ...threeport.Report) threeport.ReportSet {
	return threeport.ReportSet{
		Agent: threeport.Agent{
			ClusterUID: a.cluster, ClusterName: fmt.Sprintf("cluster-%04d", a.number), Version: "bench",
			Time: time.Now().UTC(), Pending: int64(len(reports)),
		},
		Reports: reports,
	}
}

// benchStart is the start of the measurement; the Events of fill are older.
var benchStart = time.Now()

// declare creates the rows of the fleet's workloads by v0, as upstream controllers do. fill creates those of their resources.
func (w *benchmark) declare(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	begin := time.Now()
	w.agents = make([]*agent, w.size.agents)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.writers)
	perWorkload := w.resources / w.workloads()
	for i := range w.agents {
		a := &agent{number: i, cluster: fmt.Sprintf("00000000-0000-4000-8000-%012d", i)}
		a.clock.Store(benchStart.UnixMicro())
		w.agents[i] = a
		group.Go(func() error { return a.declare(ctx, w.api, perWorkload) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	printRow(fmt.Sprintf("workloads declared by v0, %d at a time", w.writers), float64(w.workloads())/time.Since(begin).Seconds(), "/s")
	return nil
}

func (a *agent) declare(ctx context.Context, client *api, resources int) error {
	for n := range workloadsOfAgent {
		id, err := client.create(ctx, "workload-instances", map[string]any{"Name": fmt.Sprintf("app-%d-of-cluster-%04d", n, a.number)})
		if err != nil {
			return err
		}
		w := workload{instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(id)}}
		for r := range resources {
			w.resources = append(w.resources, threeport.ID(firstResource+(a.number*workloadsOfAgent+n)*resources+r))
		}
		a.workloads = append(a.workloads, w)
	}
	return nil
}

func resourceName(resource int) string { return fmt.Sprintf("resource-%d", resource) }

// sendInitialState sends the full state of each agent, as after its start.
func (w *benchmark) sendInitialState(ctx context.Context) error {
	api, db, err := w.cpuTimes()
	if err != nil {
		return err
	}
	begin := time.Now()
	var durations latencies
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.writers)
	for _, a := range w.agents {
		group.Go(func() error {
			set, start := a.set(a.state()...), time.Now()
			if err := w.api.send(ctx, set); err != nil {
				return err
			}
			durations.add(time.Since(start))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	apiAfter, dbAfter, err := w.cpuTimes()
	if err != nil {
		return err
	}
	printRow(fmt.Sprintf("first reports of %d agents, a set each, %d at a time: %d resources, %d statuses and trees", len(w.agents), w.writers,
		w.resources, w.workloads()), time.Since(begin).Seconds(), "s")
	printRow("CPU time of the API for them", (apiAfter - api).Seconds(), "s")
	printRow("CPU time of the database for them", (dbAfter - db).Seconds(), "s")
	printRow("such a set, p50", durations.percentile(50), "ms")
	printRow("such a set, p99", durations.percentile(99), "ms")
	return nil
}

// state returns the full state of the workloads of an agent.
func (a *agent) state() []threeport.Report {
	var reports []threeport.Report
	for i := range a.workloads {
		w := &a.workloads[i]
		reports = append(reports, a.status(w), a.tree(w))
		for r := range w.resources {
			reports = append(reports, a.operation(w, r))
		}
	}
	return reports
}

func (a *agent) uid(w *workload, kind string, n int) string {
	return fmt.Sprintf("%s-%s-%d-%d", kind, a.cluster, w.instance.ID, n)
}

func (a *agent) object(w *workload, kind string, n int) threeport.ObjectRef {
	return threeport.ObjectRef{
		Version: "v1", Kind: kind, Namespace: fmt.Sprintf("ns-%d", a.number), Name: strings.ToLower(kind) + "-" + resourceName(n), UID: a.uid(w, kind, n),
	}
}

func (a *agent) operation(w *workload, r int) threeport.Report {
	version := a.version()
	definition, _ := json.Marshal(map[string]any{ // strings always marshal
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": resourceName(r), "resourceVersion": version},
		"data": map[string]string{"text": randomText(definitionBytes)},
	})
	return threeport.Report{Instance: w.instance, Version: version, Operation: &threeport.OperationReport{
		ResourceInstanceID: w.resources[r], Object: a.object(w, "ConfigMap", r), Operation: threeport.OperationModified, Definition: definition,
	}}
}

func (a *agent) status(w *workload) threeport.Report {
	status, reason, cause := "Healthy", "", ""
	if randomBelow(20) == 0 {
		status, reason = "Down", "ImagePullBackOff"
		cause = "5 pods ImagePullBackOff: " + randomText(80) + " → ReplicaSet web-7887448d46 → Deployment web has 0 of 5 replicas ready"
	}
	since := time.Now().UTC()
	return threeport.Report{Instance: w.instance, Version: a.version(), Status: &threeport.StatusReport{
		Status: status, Reason: reason, Cause: cause, Since: &since,
	}}
}

func (a *agent) tree(w *workload) threeport.Report {
	var objects []threeport.TreeObject
	for r := range w.resources {
		objects = append(objects, threeport.TreeObject{
			Object: a.object(w, "ConfigMap", r), Listed: true, ResourceInstanceID: w.resources[r], State: "Present", Health: "Healthy",
		})
	}
	for p := range podsOfWorkload {
		objects = append(objects, threeport.TreeObject{Object: a.object(w, "Pod", p), Owner: a.uid(w, "ConfigMap", 0), Health: "Healthy"})
	}
	return threeport.Report{Instance: w.instance, Version: a.version(), Tree: &threeport.TreeReport{Objects: objects}}
}

func (a *agent) event() threeport.Report {
	w := &a.workloads[randomBelow(len(a.workloads))]
	version := a.version()
	first := time.Now().UTC()
	return threeport.Report{Instance: w.instance, Version: version, Event: &threeport.EventReport{
		UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", a.number, int64(version)), ResourceInstanceID: w.resources[0],
		Involved: a.object(w, "Pod", randomBelow(podsOfWorkload)),
		Type:     "Warning", Reason: "BackOff", Message: "Back-off pulling image \"" + randomText(60) + "\"",
		Time: first, FirstTime: &first, Count: 1,
	}}
}

func (a *agent) events(n int) []threeport.Report {
	out := make([]threeport.Report, n)
	for i := range out {
		out[i] = a.event()
	}
	return out
}

// randomBelow returns a random number in [0, n).
func randomBelow(n int) int { return rand.IntN(n) } //nolint:gosec // test data, no secret

// randomText returns random words, which compress like natural text.
func randomText(bytes int) string {
	words := [...]string{"registry", "image", "pull", "layer", "timeout", "pod", "replica", "volume", "quota", "secret", "config", "probe"}
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "%s-%04x ", words[randomBelow(len(words))], randomBelow(1<<16))
	}
	return b.String()[:bytes]
}
