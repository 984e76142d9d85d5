package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The log files of the demo's processes, in the cluster's run directory.
const (
	apiLog   = "controlplane.log"
	agentLog = "agent.log"
)

// logTimeout limits reading the logs at the end.
const logTimeout = time.Minute

// logFile creates a file in the cluster's run directory. It is closed when the stack stops.
func (s *stack) logFile(name string) (*os.File, error) {
	file, err := os.Create(s.logPath(name)) //nolint:gosec // constant names in a folder of the demo
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	s.files = append(s.files, file)
	return file, nil
}

func (s *stack) logPath(name string) string { return filepath.Join(s.cluster.Dir(), name) }

// logs returns the logs of the control-plane API and the agent, by name.
func (s *stack) logs(ctx context.Context) (map[string]string, error) {
	logs := map[string]string{}
	if s.api != nil {
		logs["control-plane API"] = s.api.Output()
	}
	text, err := s.agent.log(ctx)
	if err != nil {
		return logs, fmt.Errorf("read the agent's log: %w", err)
	}
	if text != "" {
		logs["agent"] = text
	}
	return logs, nil
}

// printLogs prints the ends of the logs before they are deleted with the stack.
func (s *stack) printLogs(ctx context.Context) {
	const shown = 20
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	logs, err := s.logs(ctx)
	if err != nil {
		s.printf("\n%v", err)
	}
	for name, text := range logs {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		s.printf("\nThe end of the %s's log:\n\t%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n\t"))
	}
}
