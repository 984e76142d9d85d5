package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
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
	d.printf("\nThe agent, and the Events of the workload crash in the control-plane API:\n")
	for _, command := range append(s.agent.commands(kubectl), s.access.curlCommands(s.apiURL, h.crash())...) {
		d.printf("  %s", command)
	}
	d.printf("\nAn outage of the control-plane API, and its end:\n\n  kill -STOP %d\n  kill -CONT %[1]d", s.api.PID())
	d.printf("\nThe plugin (`kubectl threeport` once it is on the PATH), in the same terminal:\n")
	for _, args := range []string{"status", "status crash", "tree crash"} {
		d.printf("  %s %s", plugin, args)
	}
	d.printf("\n%s\n\nCtrl-C stops everything.", h.ui.loginHint())
	return nil
}

// curlCommands returns commands for the Events of a workload in the control-plane API.
func (a access) curlCommands(apiURL string, instance int64) []string {
	command := fmt.Sprintf("%s '%s/v0/%s?workloadinstanceid=%d'", a.curl, apiURL, upstream.WorkloadEvents, instance)
	if a.setup == "" {
		return []string{command}
	}
	return []string{a.setup, command}
}

// crash returns the instance of the workload that crashes.
func (h *harness) crash() int64 {
	return h.deployed[slices.IndexFunc(h.deployed, func(w deployed) bool { return w.name == "crash" })].InstanceID
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
