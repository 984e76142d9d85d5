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

	"github.com/threeport/threeport-agent/internal/controlplane"
)

const (
	workloadsOfAgent = 10
	podsOfWorkload   = 20
	definitionBytes  = 2500
)

// workload is one that an agent reports of.
type workload struct {
	instance  controlplane.Instance
	resources []controlplane.ID
}

// agent is one of the fleet.
type agent struct {
	number    int
	cluster   string
	workloads []workload
	clock     atomic.Int64 // of versions
}

func (a *agent) version() controlplane.ID { return controlplane.ID(a.clock.Add(1)) }

// set returns a set of the agent's with reports.
func (a *agent) set(reports ...controlplane.Report) controlplane.ReportSet {
	return controlplane.ReportSet{
		Agent: controlplane.Agent{
			ClusterUID: a.cluster, ClusterName: fmt.Sprintf("cluster-%04d", a.number), Version: "bench",
			Time: time.Now().UTC(), Pending: int64(len(reports)),
		},
		Reports: reports,
	}
}

// declare makes the rows of the fleet's workloads and resources by v0, as upstream controllers do.
func declare(ctx context.Context, to *api, s size) ([]*agent, error) {
	agents := make([]*agent, s.agents)
	perWorkload := s.resources / (s.agents * workloadsOfAgent)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range agents {
		a := &agent{number: i, cluster: fmt.Sprintf("00000000-0000-4000-8000-%012d", i)}
		a.clock.Store(time.Now().UnixMicro())
		agents[i] = a
		group.Go(func() error { return a.declare(ctx, to, perWorkload) })
	}
	return agents, group.Wait()
}

func (a *agent) declare(ctx context.Context, to *api, resources int) error {
	for n := range workloadsOfAgent {
		id, err := to.create(ctx, "workload-instances", map[string]any{"Name": fmt.Sprintf("app-%d-of-cluster-%04d", n, a.number)})
		if err != nil {
			return err
		}
		w := workload{instance: controlplane.Instance{Type: controlplane.TypeWorkloadInstance, ID: controlplane.ID(id)}}
		for r := range resources {
			row, err := to.create(ctx, "workload-resource-instances", map[string]any{
				"JSONDefinition": map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": name(r)}}, "WorkloadInstanceID": id,
			})
			if err != nil {
				return err
			}
			w.resources = append(w.resources, controlplane.ID(row))
		}
		a.workloads = append(a.workloads, w)
	}
	return nil
}

func name(resource int) string { return fmt.Sprintf("resource-%d", resource) }

// state is the agent's first report of all that it has: a set for each workload.
func (a *agent) state(ctx context.Context, to *api) error {
	for i := range a.workloads {
		w := &a.workloads[i]
		reports := []controlplane.Report{a.status(w), a.tree(w)}
		for r := range w.resources {
			reports = append(reports, a.operation(w, r))
		}
		if err := to.send(ctx, a.set(reports...)); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) uid(w *workload, kind string, n int) string {
	return fmt.Sprintf("%s-%s-%d-%d", kind, a.cluster, w.instance.ID, n)
}

func (a *agent) object(w *workload, kind string, n int) controlplane.ObjectRef {
	return controlplane.ObjectRef{
		Version: "v1", Kind: kind, Namespace: fmt.Sprintf("ns-%d", a.number), Name: strings.ToLower(kind) + "-" + name(n), UID: a.uid(w, kind, n),
	}
}

func (a *agent) operation(w *workload, r int) controlplane.Report {
	version := a.version()
	definition, _ := json.Marshal(map[string]any{ // strings always marshal
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name(r), "resourceVersion": version},
		"data": map[string]string{"text": text(definitionBytes)},
	})
	return controlplane.Report{Instance: w.instance, Version: version, Operation: &controlplane.OperationReport{
		ResourceInstanceID: w.resources[r], Object: a.object(w, "ConfigMap", r), Operation: controlplane.OperationModified, Definition: definition,
	}}
}

func (a *agent) status(w *workload) controlplane.Report {
	status, reason, cause := "Healthy", "", ""
	if rand.IntN(20) == 0 { //nolint:gosec // a load, no secret
		status, reason = "Down", "ImagePullBackOff"
		cause = "Deployment web has 0 of 5 replicas ready ← ReplicaSet web-7887448d46 ← 5 pods ImagePullBackOff: " + text(80)
	}
	since := time.Now().UTC()
	return controlplane.Report{Instance: w.instance, Version: a.version(), Status: &controlplane.StatusReport{
		Status: status, Reason: reason, Cause: cause, Since: &since,
	}}
}

func (a *agent) tree(w *workload) controlplane.Report {
	var objects []controlplane.TreeObject
	for r := range w.resources {
		objects = append(objects, controlplane.TreeObject{
			Object: a.object(w, "ConfigMap", r), Listed: true, ResourceInstanceID: w.resources[r], State: "Present", Health: "Healthy",
		})
	}
	for p := range podsOfWorkload {
		objects = append(objects, controlplane.TreeObject{Object: a.object(w, "Pod", p), Owner: a.uid(w, "ConfigMap", 0), Health: "Healthy"})
	}
	return controlplane.Report{Instance: w.instance, Version: a.version(), Tree: &controlplane.TreeReport{Objects: objects}}
}

func (a *agent) event() controlplane.Report {
	w := &a.workloads[rand.IntN(len(a.workloads))] //nolint:gosec // a load, no secret
	version := a.version()
	first := time.Now().UTC()
	return controlplane.Report{Instance: w.instance, Version: version, Event: &controlplane.EventReport{
		UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", a.number, int64(version)), ResourceInstanceID: w.resources[0],
		Involved: a.object(w, "Pod", rand.IntN(podsOfWorkload)), //nolint:gosec // a load, no secret
		Type:     "Warning", Reason: "BackOff", Message: "Back-off pulling image \"" + text(60) + "\"",
		Time: first, FirstTime: &first, Count: 1,
	}}
}

func (a *agent) events(n int) []controlplane.Report {
	out := make([]controlplane.Report, n)
	for i := range out {
		out[i] = a.event()
	}
	return out
}

// text returns random words, which compress as words do.
func text(bytes int) string {
	words := [...]string{"registry", "image", "pull", "layer", "timeout", "pod", "replica", "volume", "quota", "secret", "config", "probe"}
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "%s-%04x ", words[rand.IntN(len(words))], rand.IntN(1<<16)) //nolint:gosec // a load, no secret
	}
	return b.String()[:bytes]
}
