package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/threeport/threeport-agent/hack/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// hint tells how to look further, in commands that can be copied.
func (d *demo) hint(ctx context.Context, s *stack, scene *scene) error {
	kubectl, err := findKubectl(ctx, s)
	if err != nil {
		return err
	}
	d.say(`
The cluster, in another terminal:

  export KUBECONFIG=%[1]s
  %[2]s get threeportworkloads -o wide
  %[2]s describe threeportworkload crash
  %[2]s -n %[3]s get events
  %[2]s -n %[3]s scale deployment web --replicas=5

What the control-plane API was told:
`, s.cluster.Kubeconfig(), kubectl, namespace)
	for _, w := range scene.deployed {
		instances, filter := upstream.WorkloadInstances, "workloadinstanceid"
		if w.helm() {
			instances, filter = upstream.HelmWorkloadInstances, "helmworkloadinstanceid"
		}
		if w.name == "crash" {
			d.curl(s, w, fmt.Sprintf("%s/%d", instances, w.InstanceID))
			d.curl(s, w, fmt.Sprintf("%s?%s=%d", upstream.WorkloadResourceInstances, filter, w.InstanceID))
		}
		d.curl(s, w, fmt.Sprintf("%s?%s=%d", upstream.WorkloadEvents, filter, w.InstanceID))
	}
	d.say(`
The agent itself:

  curl -s %s
  curl -s %s/readyz

Logs: %s/*.log
Processes: %s

Ctrl-C stops everything.`, s.metricsURL, s.probesURL, s.cluster.Dir(), strings.Join(processes(s), ", "))
	return nil
}

func (d *demo) curl(s *stack, w deployed, path string) {
	d.say("  curl -s '%s/v0/%s'  # %s", s.apiURL, path, w.name)
}

// findKubectl returns what to call kubectl by; it is built if the machine has none.
func findKubectl(ctx context.Context, s *stack) (string, error) {
	found, err := cluster.FindBinaries(ctx, s.log, cluster.Kubectl)
	if err != nil {
		return "", err
	}
	path := found[cluster.Kubectl]
	if known, err := exec.LookPath(string(cluster.Kubectl)); err == nil && known == path {
		return string(cluster.Kubectl), nil
	}
	return path, nil
}

// processes lists what runs, with process IDs.
func processes(s *stack) []string {
	list := []string{fmt.Sprintf("agent %d", s.agent.PID()), fmt.Sprintf("controlplane %d", s.api.PID())}
	for _, component := range s.cluster.Components() {
		list = append(list, fmt.Sprintf("%s %d", component, s.cluster.PID(component)))
	}
	return list
}
