package oracle

import (
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// gapReason is that of a row which stands for Events that the agent had to drop.
const gapReason = "EventsDropped"

// gapMessage is how such a row begins: how many there were, how many of them Normal, and how many Warnings.
var gapMessage = regexp.MustCompile(`^(\d+) Events \((\d+) Normal, (\d+) Warning\) that happened between `)

// gap is how many Events of a workload the control plane was told that it does not get, by type.
type gap map[string]int

// read adds what a row says.
func (g gap) read(row threeport.WorkloadEvent) error {
	found := gapMessage.FindStringSubmatch(deref(row.Message))
	if found == nil {
		return fmt.Errorf("its message is %q", deref(row.Message))
	}
	var n [3]int
	for i, digits := range found[1:] {
		var err error
		if n[i], err = strconv.Atoi(digits); err != nil {
			return fmt.Errorf("its message is %q: %w", deref(row.Message), err)
		}
	}
	if n[0] != n[1]+n[2] {
		return fmt.Errorf("its numbers do not add up: %q", deref(row.Message))
	}
	g[corev1.EventTypeNormal] += n[1]
	g[corev1.EventTypeWarning] += n[2]
	return nil
}

// covers takes one Event of a type off, and reports whether there was one.
func (g gap) covers(eventType string) bool {
	if g[eventType] == 0 {
		return false
	}
	g[eventType]--
	return true
}

// gaps are those of the workloads.
type gaps map[*Expected]gap

// take reads the rows about gaps among those that are no Event of the cluster.
func (g gaps) take(row threeport.WorkloadEvent, workloads []Expected) error {
	for i := range workloads {
		workload, helm := workloads[i].ids()
		if workload != deref(row.WorkloadInstanceID) || helm != deref(row.HelmWorkloadInstanceID) {
			continue
		}
		if g[&workloads[i]] == nil {
			g[&workloads[i]] = gap{}
		}
		return g[&workloads[i]].read(row)
	}
	return fmt.Errorf("it belongs to no workload")
}
