package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The logs of the demo's processes, in the cluster's run directory beside those of its components.
const (
	apiLog   = "controlplane.log"
	agentLog = "agent.log"
)

// logFile creates a file in the cluster's run directory. It is closed when the stack stops.
func (s *stack) logFile(name string) (*os.File, error) {
	file, err := os.Create(filepath.Join(s.cluster.Dir(), name)) //nolint:gosec // our own names in our own folder
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	s.files = append(s.files, file)
	return file, nil
}

// logs returns what the processes have printed, by the processes' names.
func (s *stack) logs() map[string]string {
	logs := map[string]string{}
	if s.agent != nil {
		logs["agent"] = s.agent.Output()
	}
	if s.api != nil {
		logs["control-plane API"] = s.api.Output()
	}
	return logs
}

// printLogs prints the ends of the logs, which will be gone with the stack.
func (s *stack) printLogs() {
	const shown = 20
	for name, text := range s.logs() {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		s.say("\nThe end of the %s's log:\n\t%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n\t"))
	}
}
