package scenario

import (
	corev1 "k8s.io/api/core/v1"
)

// ending are scenarios of terminating pods.
func ending() []Scenario {
	return []Scenario{
		{
			Name: "terminating",
			Steps: []Step{
				{Reached: pods(1, ready(corev1.ConditionTrue))},
				{
					Moment: "terminating-in-grace", Doc: "It is being deleted, and ignores SIGTERM.", Status: Reconciling, Reason: "Terminating",
					Do:      remove(podResource, "web"),
					Reached: all(pods(1, deleting(true), container("web", running)), happened(podKind, "Killing", "")),
				},
				{
					Moment: "terminating-beyond-grace", Doc: "It was killed, and a finalizer keeps it.", Status: Unhealthy,
					Reached: all(overdue, pods(1, givenUp, container("web", terminated("Error", 137)))),
				},
				{
					Do:      patch(podResource, "web", `{"metadata": {"$deleteFromPrimitiveList/finalizers": ["threeport.io/hold"]}}`),
					Reached: pods(0),
				},
			},
		},
		{
			Name: "prestop-failing",
			Steps: []Step{
				{Reached: pods(1, ready(corev1.ConditionTrue))},
				{
					Moment: "prestop-failing", Doc: "It is being deleted, its preStop hook has failed, and it ignores SIGTERM.",
					Status: Reconciling, Reason: "Terminating",
					Do:      remove(podResource, "web"),
					Reached: all(pods(1, deleting(true), container("web", running)), happened(podKind, "FailedPreStopHook", "")),
				},
			},
		},
	}
}
