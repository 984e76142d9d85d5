package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// printHints prints commands that show more. The most useful ones are the last.
func (d *demo) printHints(ctx context.Context, s *stack, h *harness) error {
	kubectl, err := findKubectl(ctx, s)
	if err != nil {
		return err
	}
	plugin, err := s.build(ctx, "./cmd/kubectl-threeport")
	if err != nil {
		return err
	}
	d.printf("\nThe rows in the control-plane API:\n")
	if s.access.setup != "" {
		d.printf("  %s", s.access.setup)
	}
	for _, w := range h.deployed {
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
	d.printf("\nThe agent itself:\n")
	for _, command := range s.agent.commands(kubectl) {
		d.printf("  %s", command)
	}
	d.printf("\nLogs: %s/*.log\nProcesses: %s", s.cluster.Dir(), strings.Join(processes(s), ", "))
	d.printf("\nThe cluster, in another terminal:\n\n  export KUBECONFIG=%s", s.cluster.Kubeconfig())
	for _, args := range append([]string{
		"get threeportworkloads -o wide",
		"describe threeportworkload crash",
		"-n " + namespace + " get events",
		"-n " + namespace + " scale deployment web --replicas=5",
	}, s.mode.hints...) {
		d.printf("  %s %s", kubectl, args)
	}
	d.printf("\nThe plugin, `kubectl threeport` once it is on the PATH:\n")
	for _, args := range []string{"status", "status crash", "tree crash"} {
		d.printf("  %s %s", plugin, args)
	}
	d.printf("\n%s\n\nCtrl-C stops everything.", h.ui.loginHint())
	return nil
}

func (d *demo) curl(s *stack, w deployed, path string) {
	d.printf("  %s '%s/v0/%s'  # %s", s.access.curl, s.apiURL, path, w.name)
}

// findKubectl returns the path of kubectl, and builds it if the machine has none.
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

// processes lists the processes with their IDs.
func processes(s *stack) []string {
	var list []string
	if p := s.agent.process(); p != nil {
		list = append(list, fmt.Sprintf("agent %d", p.PID()))
	}
	list = append(list, fmt.Sprintf("controlplane %d", s.api.PID()))
	for _, component := range s.cluster.Components() {
		list = append(list, fmt.Sprintf("%s %d", component, s.cluster.PID(component)))
	}
	return list
}
