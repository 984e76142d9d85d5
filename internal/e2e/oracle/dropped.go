package oracle

import (
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// droppedReason is the reason of a row that counts Events that the agent dropped.
const droppedReason = "EventsDropped"

// droppedMessage is the beginning of its message: the number of Events, and of those with type Normal and Warning.
var droppedMessage = regexp.MustCompile(`^(\d+) Events \((\d+) Normal, (\d+) Warning\) that happened between `)

// droppedCounts are the numbers of Events of a workload that the agent reported as dropped, by type.
type droppedCounts map[string]int

// add adds the numbers of a row.
func (g droppedCounts) add(row threeport.WorkloadEvent) error {
	found := droppedMessage.FindStringSubmatch(deref(row.Message))
	if found == nil {
		return fmt.Errorf("unexpected message %q", deref(row.Message))
	}
	var n [3]int
	for i, digits := range found[1:] {
		var err error
		if n[i], err = strconv.Atoi(digits); err != nil {
			return fmt.Errorf("unexpected message %q: %w", deref(row.Message), err)
		}
	}
	if n[0] != n[1]+n[2] {
		return fmt.Errorf("the numbers of the message do not add up: %q", deref(row.Message))
	}
	g[corev1.EventTypeNormal] += n[1]
	g[corev1.EventTypeWarning] += n[2]
	return nil
}

// takeOne subtracts one Event of a type, and reports whether there was one.
func (g droppedCounts) takeOne(eventType string) bool {
	if g[eventType] == 0 {
		return false
	}
	g[eventType]--
	return true
}

// droppedByWorkload are the numbers of all workloads.
type droppedByWorkload map[*Expected]droppedCounts

// add adds the numbers of a row to those of its workload.
func (g droppedByWorkload) add(row threeport.WorkloadEvent, workloads []Expected) error {
	for i := range workloads {
		workload, helm := workloads[i].ids()
		if workload != deref(row.WorkloadInstanceID) || helm != deref(row.HelmWorkloadInstanceID) {
			continue
		}
		if g[&workloads[i]] == nil {
			g[&workloads[i]] = droppedCounts{}
		}
		return g[&workloads[i]].add(row)
	}
	return fmt.Errorf("the row belongs to no workload")
}
