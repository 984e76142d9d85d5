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

// began is the start of the measurement; filled Events are older.
var began = time.Now()

// declare creates the rows of the fleet's workloads by v0, as upstream controllers do. fill creates those of their resources.
func (w *world) declare(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	begin := time.Now()
	w.agents = make([]*agent, w.size.agents)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.writers)
	each := w.resources / w.workloads()
	for i := range w.agents {
		a := &agent{number: i, cluster: fmt.Sprintf("00000000-0000-4000-8000-%012d", i)}
		a.clock.Store(began.UnixMicro())
		w.agents[i] = a
		group.Go(func() error { return a.declare(ctx, w.api, each) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	row(fmt.Sprintf("workloads declared by v0, %d at a time", w.writers), float64(w.workloads())/time.Since(begin).Seconds(), "/s")
	return nil
}

func (a *agent) declare(ctx context.Context, to *api, resources int) error {
	for n := range workloadsOfAgent {
		id, err := to.create(ctx, "workload-instances", map[string]any{"Name": fmt.Sprintf("app-%d-of-cluster-%04d", n, a.number)})
		if err != nil {
			return err
		}
		of := workload{instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(id)}}
		for r := range resources {
			of.resources = append(of.resources, threeport.ID(firstResource+(a.number*workloadsOfAgent+n)*resources+r))
		}
		a.workloads = append(a.workloads, of)
	}
	return nil
}

func name(resource int) string { return fmt.Sprintf("resource-%d", resource) }

// first sends the full state of each agent, as after its start.
func (w *world) first(ctx context.Context) error {
	api, db, err := w.used()
	if err != nil {
		return err
	}
	begin := time.Now()
	var took latencies
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.writers)
	for _, a := range w.agents {
		group.Go(func() error {
			set, due := a.set(a.state()...), time.Now()
			if err := w.api.send(ctx, set); err != nil {
				return err
			}
			took.add(time.Since(due))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	apiAfter, dbAfter, err := w.used()
	if err != nil {
		return err
	}
	row(fmt.Sprintf("first reports of %d agents, a set each, %d at a time: %d resources, %d statuses and trees", len(w.agents), w.writers,
		w.resources, w.workloads()), time.Since(begin).Seconds(), "s")
	row("cores of the API for them", (apiAfter - api).Seconds(), "s")
	row("cores of the database for them", (dbAfter - db).Seconds(), "s")
	row("such a set, p50", took.percentile(50), "ms")
	row("such a set, p99", took.percentile(99), "ms")
	return nil
}

// state returns the full state of the workloads of an agent.
func (a *agent) state() []threeport.Report {
	var reports []threeport.Report
	for i := range a.workloads {
		of := &a.workloads[i]
		reports = append(reports, a.status(of), a.tree(of))
		for r := range of.resources {
			reports = append(reports, a.operation(of, r))
		}
	}
	return reports
}

func (a *agent) uid(w *workload, kind string, n int) string {
	return fmt.Sprintf("%s-%s-%d-%d", kind, a.cluster, w.instance.ID, n)
}

func (a *agent) object(w *workload, kind string, n int) threeport.ObjectRef {
	return threeport.ObjectRef{
		Version: "v1", Kind: kind, Namespace: fmt.Sprintf("ns-%d", a.number), Name: strings.ToLower(kind) + "-" + name(n), UID: a.uid(w, kind, n),
	}
}

func (a *agent) operation(w *workload, r int) threeport.Report {
	version := a.version()
	definition, _ := json.Marshal(map[string]any{ // strings always marshal
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name(r), "resourceVersion": version},
		"data": map[string]string{"text": text(definitionBytes)},
	})
	return threeport.Report{Instance: w.instance, Version: version, Operation: &threeport.OperationReport{
		ResourceInstanceID: w.resources[r], Object: a.object(w, "ConfigMap", r), Operation: threeport.OperationModified, Definition: definition,
	}}
}

func (a *agent) status(w *workload) threeport.Report {
	status, reason, cause := "Healthy", "", ""
	if below(20) == 0 {
		status, reason = "Down", "ImagePullBackOff"
		cause = "Deployment web has 0 of 5 replicas ready ← ReplicaSet web-7887448d46 ← 5 pods ImagePullBackOff: " + text(80)
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
	w := &a.workloads[below(len(a.workloads))]
	version := a.version()
	first := time.Now().UTC()
	return threeport.Report{Instance: w.instance, Version: version, Event: &threeport.EventReport{
		UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", a.number, int64(version)), ResourceInstanceID: w.resources[0],
		Involved: a.object(w, "Pod", below(podsOfWorkload)),
		Type:     "Warning", Reason: "BackOff", Message: "Back-off pulling image \"" + text(60) + "\"",
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

// below returns a random number in [0, n).
func below(n int) int { return rand.IntN(n) } //nolint:gosec // a load, no secret

// text returns random words, which compress like natural text.
func text(bytes int) string {
	words := [...]string{"registry", "image", "pull", "layer", "timeout", "pod", "replica", "volume", "quota", "secret", "config", "probe"}
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "%s-%04x ", words[below(len(words))], below(1<<16))
	}
	return b.String()[:bytes]
}
