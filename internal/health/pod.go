package health

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Pod judges a pod by its phase, its conditions and its containers' states.
//
// Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
func Pod(pod *corev1.Pod) Verdict {
	if pod.DeletionTimestamp != nil {
		return Verdict{Reconciling, "Terminating", "the pod is being deleted"}
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return Verdict{Status: Healthy}
	case corev1.PodFailed:
		return Verdict{Down, cmp.Or(pod.Status.Reason, "PodFailed"), cmp.Or(pod.Status.Message, "a container failed")}
	case corev1.PodUnknown:
		return Verdict{Unknown, cmp.Or(pod.Status.Reason, "PodUnknown"), cmp.Or(pod.Status.Message, "the pod's node does not tell")}
	case corev1.PodPending, corev1.PodRunning:
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if v, failing := container(&statuses[i]); failing {
				return v
			}
		}
	}
	return podByConditions(pod)
}

func podByConditions(pod *corev1.Pod) Verdict {
	if c := podCondition(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		if c.Reason == corev1.PodReasonSchedulingGated {
			return Verdict{Reconciling, c.Reason, cmp.Or(c.Message, "the pod is held back from scheduling")}
		}
		return Verdict{Down, cmp.Or(c.Reason, "Unschedulable"), cmp.Or(c.Message, "the pod is not scheduled")}
	}
	ready := podCondition(pod, corev1.PodReady)
	if pod.Status.Phase != corev1.PodRunning {
		return Verdict{Reconciling, "Starting", "the pod is starting"}
	}
	if ready.Status == corev1.ConditionTrue {
		return Verdict{Status: Healthy}
	}
	allReady := len(pod.Status.ContainerStatuses) > 0
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if running := c.State.Running; running != nil && !c.Ready && !starting(c, ready) {
			return Verdict{Unhealthy, "NotReady", fmt.Sprintf("container %s runs and is not ready", c.Name)}
		}
		allReady = allReady && c.Ready
	}
	if allReady && ready.Status == corev1.ConditionFalse { // its node is lost, or a readiness gate is closed
		return Verdict{Unhealthy, cmp.Or(ready.Reason, "NotReady"), cmp.Or(ready.Message, "the pod is not ready")}
	}
	return Verdict{Reconciling, "Starting", "the pod is starting"}
}

// starting reports whether a container that runs has not been ready yet since it started: its startup probe
// has not passed, or the pod has been unready since before. Whether that takes too long is for its owner's
// deadline to say.
func starting(c *corev1.ContainerStatus, ready corev1.PodCondition) bool {
	if c.Started != nil && !*c.Started {
		return true
	}
	since, started := ready.LastTransitionTime, c.State.Running.StartedAt
	return ready.Status == corev1.ConditionFalse && c.RestartCount == 0 && !since.IsZero() && !started.Before(&since)
}

func podCondition(pod *corev1.Pod, name corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return corev1.PodCondition{}
}

// container reports whether a container is failing. A waiting reason other than the two of an ordinary
// start is an error of the kubelet's or the runtime's.
func container(c *corev1.ContainerStatus) (Verdict, bool) {
	last := c.LastTerminationState.Terminated
	switch waiting := c.State.Waiting; {
	case waiting != nil && waiting.Reason == "CrashLoopBackOff":
		message := "container " + c.Name + " crashes again and again"
		if last != nil {
			message = fmt.Sprintf("container %s crashes: %s (exit code %d)", c.Name, cmp.Or(last.Reason, "Error"), last.ExitCode)
		}
		return Verdict{Down, "CrashLoopBackOff", message}, true
	case waiting != nil && (waiting.Reason == "ImagePullBackOff" || waiting.Reason == "ErrImagePull"):
		return Verdict{Down, "ImagePullBackOff", fmt.Sprintf("image %s cannot be pulled", c.Image)}, true
	case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
		return Verdict{Down, waiting.Reason, fmt.Sprintf("container %s: %s", c.Name, waiting.Reason)}, true
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return Verdict{
			Down, cmp.Or(t.Reason, "Error"),
			fmt.Sprintf("container %s ended: %s (exit code %d)", c.Name, cmp.Or(t.Reason, "Error"), t.ExitCode),
		}, true
	}
	return Verdict{}, false
}
