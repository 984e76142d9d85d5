package scenario

import (
	corev1 "k8s.io/api/core/v1"
)

// The messages of the kubelet for an answer 500 to a probe. On a busy machine another one may come first: the program does not
// listen yet, or answers late.
const (
	answers500 = " probe failed: HTTP probe failed with statuscode: 500"
	notAlive   = "Liveness" + answers500
	notReady   = "Readiness" + answers500
	notStarted = "Startup" + answers500
)

// probes are scenarios of running programs with failing probes.
func probes() []Scenario {
	return []Scenario{
		{
			Name: "liveness",
			Steps: []Step{{
				Moment: "liveness", Doc: "It has hung four times, and was ended each time.", Status: Down, Reason: "CrashLoopBackOff",
				Reached: all(available(0), pods(1, container("web", killed("Completed", 0))), repeated(podKind, "BackOff", ""), repeated(podKind, "Unhealthy", notAlive)),
			}},
		},
		{
			Name: "startup",
			Steps: []Step{{
				Moment: "startup", Doc: "It has not come up four times, and was ended each time.", Status: Down, Reason: "CrashLoopBackOff",
				// There is no Event BackOff: the failing probes exhaust the kubelet's limit of Warnings about a pod, 25 and then
				// one in five minutes (client-go, EventSourceObjectSpamFilter).
				Reached: all(available(0), pods(1, container("web", killed("Completed", 0))), repeated(podKind, "Unhealthy", notStarted)),
			}},
		},
		{
			Name: "readiness",
			Steps: []Step{
				{
					Moment: "readiness-starting", Doc: "It runs, and may still become ready.", Status: Reconciling,
					Reached: all(pods(1, container("web", running), ready(corev1.ConditionFalse)), repeated(podKind, "Unhealthy", notReady),
						progressing(corev1.ConditionTrue, "ReplicaSetUpdated")),
				},
				{
					Moment: "readiness-deadline", Doc: "The Deployment's deadline for progress is over.", Status: Down,
					Reached: all(pods(1, container("web", running), ready(corev1.ConditionFalse)),
						progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded")),
				},
			},
		},
		{
			Name: "readiness-lost",
			Steps: []Step{
				{Reached: available(1)},
				{
					Moment: "readiness-lost", Doc: "It runs, and is no longer ready.", Status: Down,
					Reached: all(available(0), pods(1, container("web", running, restarts(0)), ready(corev1.ConditionFalse)),
						repeated(podKind, "Unhealthy", notReady)),
				},
			},
		},
	}
}
