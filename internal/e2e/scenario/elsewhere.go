package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// elsewhere are scenarios of workloads with external faults.
func elsewhere() []Scenario {
	unschedulable := podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
	return []Scenario{
		{
			Name: "unschedulable",
			Steps: []Step{{
				Moment: "unschedulable", Doc: "No node has enough CPU for it.", Status: Down, Reason: corev1.PodReasonUnschedulable,
				Reached: all(pods(1, unschedulable), happened(podKind, "FailedScheduling", "Insufficient cpu")),
			}},
		},
		{
			Name: "pvc-pending",
			Steps: []Step{{
				Moment: "pvc-pending", Doc: "It waits for a volume claim without a volume.", Status: Down, Reason: corev1.PodReasonUnschedulable,
				Reached: all(pods(1, unschedulable), repeated("PersistentVolumeClaim", "FailedBinding", ""), happened(podKind, "FailedScheduling", "")),
			}},
		},
	}
}

// node is a scenario of a failing node.
func node() []Scenario {
	return []Scenario{{
		Name: "node-gone", Node: true,
		Steps: []Step{
			{Reached: rolledOut},
			{
				Moment: "node-gone-unreachable", Doc: "The kubelet has stopped; the container may run.", Status: Down,
				Do: stopKubelet,
				Reached: all(nodeReady(corev1.ConditionUnknown), available(0),
					pods(1, deleting(false), podCondition(corev1.PodReady, corev1.ConditionFalse, "")), happened(podKind, "NodeNotReady", "")),
			},
			{
				Moment: "node-gone-evicted", Doc: "The lost node cannot delete the pod, and its replacement has no node.", Status: Down,
				Reached: all(nodeReady(corev1.ConditionUnknown), some(1, deleting(true)),
					some(1, podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)),
					happened(podKind, "TaintManagerEviction", ""), happened(podKind, "FailedScheduling", ""), overdue),
			},
			{
				Moment: "node-gone-back", Doc: "The kubelet runs again, and so does a new pod.", Status: Healthy,
				Do:      startKubelet,
				Reached: all(nodeReady(corev1.ConditionTrue), rolledOut, pods(1, ready(corev1.ConditionTrue))),
			},
		},
	}}
}

// nodeReady checks the only node in a snapshot.
func nodeReady(status corev1.ConditionStatus) Check {
	return objects(1, func(node *corev1.Node) error {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == status {
				return nil
			}
		}
		return fmt.Errorf("node %s is not Ready=%s", node.Name, status)
	})
}
