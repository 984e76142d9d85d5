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
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return Verdict{Down, cmp.Or(c.Reason, "Unschedulable"), cmp.Or(c.Message, "the pod is not scheduled")}
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return Verdict{Status: Healthy}
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.State.Running != nil && !c.Ready {
			return Verdict{Unhealthy, "NotReady", fmt.Sprintf("container %s runs and is not ready", c.Name)}
		}
	}
	return Verdict{Reconciling, "Starting", "the pod is starting"}
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
		return Verdict{Down, cmp.Or(t.Reason, "Error"),
			fmt.Sprintf("container %s ended: %s (exit code %d)", c.Name, cmp.Or(t.Reason, "Error"), t.ExitCode)}, true
	}
	return Verdict{}, false
}

