package health

import (
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// killDelay is how long a kubelet may take to end a pod after its grace period.
	killDelay = 30 * time.Second
	// removeDelay is how long a pod may exist after its kubelet is done with it. Then only finalizers keep it.
	removeDelay = 5 * time.Second
	// completion is how long a kubelet may take to end a pod whose containers have completed: to stop its sidecars, and to
	// remove its sandbox.
	completion = 5 * time.Minute
)

// podCompleted is the reason of the condition Ready of a pod whose containers have completed. The kubelet writes it before
// the phase Succeeded, which waits for the end of all containers and sidecars.
//
// Source: mergePodStatus in pkg/kubelet/status/status_manager.go of kubernetes/kubernetes.
const podCompleted = "PodCompleted"

// podFields assesses a pod that is not decoded yet.
func podFields(s *fields, ctx Context) Assessment {
	a := Pod(readPod(s), ctx)
	if s.malformed != "" && a.Phase != Terminating && !worse(a.Status, Reconciling) {
		return malformed(s)
	}
	return a
}

// Pod assesses a pod by its phase, its conditions and the states of its containers. Warnings add causes that the status
// does not have: by its status, a pod whose volume cannot be mounted is only starting.
//
// Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
func Pod(pod *corev1.Pod, ctx Context) Assessment {
	a := podStatus(pod, ctx)
	a.Revision = pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	return a.bounded()
}

func podStatus(pod *corev1.Pod, ctx Context) Assessment {
	if pod.DeletionTimestamp != nil {
		return podTerminating(pod, ctx)
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return Assessment{Verdict: Verdict{Status: Healthy, Reason: Completed}, Phase: Ended}
	case corev1.PodFailed:
		return podFailed(pod)
	case corev1.PodUnknown:
		if pod.Status.Reason != nodeLost {
			return verdict(Unknown, camelReason(pod.Status.Reason, "PodUnknown"),
				"the state of the pod is unknown"+colon(sanitizeMessage(pod, pod.Status.Message)))
		}
	case corev1.PodPending, corev1.PodRunning:
	}
	if pod.Status.Reason == nodeLost {
		return nodeUnreachable(nodeLost, podCondition(pod, corev1.PodReady).LastTransitionTime)
	}
	if c := podCondition(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		return podUnscheduled(pod, c)
	}
	if c := podCondition(pod, corev1.PodReady); c.Reason == podCompleted {
		return pending(ctx, c.LastTransitionTime.Time, completion, Unhealthy, podCompleted,
			"the containers of the pod have completed, and its node is ending the pod")
	}
	if a, failing := containersFail(pod, ctx); failing {
		return a
	}
	if pod.Status.Phase != corev1.PodRunning {
		return podStarting(pod, ctx)
	}
	return podReadiness(pod, ctx)
}

// nodeLost is the reason of a pod whose node does not report.
const nodeLost = "NodeLost"

const terminatingTooLong = "TerminatingTooLong"

// podTerminating assesses a pod that is being deleted. Its grace period ends at the deletionTimestamp. A kubelet that is
// done with the pod deletes it again, without a grace period.
//
// Source: metadata.deletionTimestamp, deletionGracePeriodSeconds and finalizers, ObjectMeta.
func podTerminating(pod *corev1.Pod, ctx Context) Assessment {
	slack := killDelay
	done := pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	if done {
		slack = removeDelay
	}
	over := pod.DeletionTimestamp.Add(slack)
	if ctx.Now.Before(over) {
		message := "the pod is being deleted"
		if c := podCondition(pod, corev1.DisruptionTarget); c.Status == corev1.ConditionTrue {
			message += ": " + disruption(c.Reason)
		}
		a := verdict(Reconciling, "Terminating", message)
		a.Phase, a.Recheck = Terminating, over
		return a
	}
	message := "the pod is being deleted, and its node has not ended it within its grace"
	if len(pod.Finalizers) > 0 && (done || !runsAny(pod)) {
		message = "the pod has ended, and is kept by the finalizer " + truncate(strings.Join(pod.Finalizers, ", "), maxName)
	}
	a := verdict(Unhealthy, terminatingTooLong, message)
	a.Since = over
	return a
}

// disruption describes the reason of a disruption.
//
// Source: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
func disruption(reason string) string {
	switch reason {
	case corev1.PodReasonPreemptionByScheduler:
		return "it was preempted by a pod of higher priority"
	case "DeletionByTaintManager":
		return "it does not tolerate a taint of its node"
	case "EvictionByEvictionAPI":
		return "it was evicted by the API"
	case "DeletionByPodGC":
		return "its node is gone"
	case corev1.PodReasonTerminationByKubelet:
		return "it was ended by its kubelet"
	}
	return camelReason(reason, "it was disrupted")
}

func runsAny(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running != nil {
			return true
		}
	}
	return false
}

// podFailed assesses a pod in the phase Failed: a container failed, or the pod was evicted, preempted, shut down with its
// node, or not admitted by it.
//
// Source: status.phase, status.reason and status.message.
func podFailed(pod *corev1.Pod) Assessment {
	a := verdict(Down, "PodFailed", "the pod failed")
	switch c := podCondition(pod, corev1.DisruptionTarget); {
	case pod.Status.Reason == "Evicted":
		// The sentences after the first have amounts, which differ from pod to pod.
		words, _, _ := strings.Cut(sanitizeMessage(pod, pod.Status.Message), ". ")
		a = verdict(Down, "Evicted", "the pod was evicted"+colon(words))
	case pod.Status.Reason != "":
		a = verdict(Down, camelReason(pod.Status.Reason, "PodFailed"), "the pod failed"+colon(sanitizeMessage(pod, pod.Status.Message)))
	case c.Status == corev1.ConditionTrue:
		a = verdict(Down, camelReason(c.Reason, "DisruptionTarget"), "the pod was ended: "+disruption(c.Reason))
	default:
		for _, c := range containersOf(pod) {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
				a = verdict(Down, camelReason(t.Reason, "Error"), c.name()+" ended: "+exitDescription(t))
				break
			}
		}
	}
	a.Phase, a.Since = Ended, podCondition(pod, corev1.PodReady).LastTransitionTime.Time
	return a
}

// preemptionText matches the end of a scheduler's message: why no other pod can be preempted, or that no plugin has an answer to
// that. The counts of the reasons why no node fits come before it.
//
// Source: FitError.Error in pkg/scheduler/framework of kubernetes/kubernetes, and the PostFilter plugins DynamicResources and
// DefaultPreemption, whose messages it appends.
var preemptionText = regexp.MustCompile(`(?s)\s*(?:no new claims to deallocate,\s*)?preemption: .*$|\.\s+not found\.?\s*$`)

// podUnscheduled assesses a pod without a node.
//
// Source: condition PodScheduled; status.nominatedNodeName, "Pod Priority and Preemption".
func podUnscheduled(pod *corev1.Pod, c corev1.PodCondition) Assessment {
	words := nameClaims(pod, sanitizeMessage(pod, preemptionText.ReplaceAllString(c.Message, "")))
	a := verdict(Down, camelReason(c.Reason, corev1.PodReasonUnschedulable), "the pod cannot be scheduled"+colon(words))
	switch {
	case c.Reason == corev1.PodReasonSchedulingGated:
		a = verdict(Reconciling, c.Reason, "the pod is held back from scheduling"+colon(words))
	case pod.Status.NominatedNodeName != "":
		a = verdict(Reconciling, "Preempting", "the pod waits until lower-priority pods have left its node")
	}
	a.Since = c.LastTransitionTime.Time
	return a
}

// startFailures has the reasons of Warnings about pods that cannot start. The status of such a pod does not have them.
//
// Source: the kubelet's and the attach-detach controller's Events, pkg/kubelet/events in kubernetes/kubernetes.
var startFailures = map[string]string{
	"FailedMount":        "a volume of the pod cannot be mounted",
	"FailedAttachVolume": "a volume of the pod cannot be attached",
	"FailedMapVolume":    "a volume of the pod cannot be mapped",

	"FailedCreatePodSandBox": "the sandbox of the pod cannot be created",
	"FailedPodSandBoxStatus": "the sandbox of the pod cannot be examined",
	"FailedCreatePodCgroup":  "the control group of the pod cannot be created",

	"FailedPrepareDynamicResources": "the devices of the pod cannot be prepared",
	"NetworkNotReady":               "the network of the pod's node is not ready",
	"FailedSync":                    "the pod cannot be brought up by its node",
}

// startRaces are parts of Warnings that are common during a normal start, before the kubelet has read an object.
var startRaces = []string{"failed to sync configmap cache", "failed to sync secret cache", "not registered"}

// podStarting assesses a pod that has a node and no failed container. A Warning counts until a container has started.
func podStarting(pod *corev1.Pod, ctx Context) Assessment {
	since := startTime(pod)
	cause, known := startFailures[ctx.Warning.Reason]
	if known && !runsSomething(pod) && !containsAny(ctx.Warning.Message, startRaces) {
		a := verdict(Down, ctx.Warning.Reason, cause+colon(sanitizeMessage(pod, ctx.Warning.Message)))
		a.Since = since
		return a
	}
	return startingSince("Starting", startingMessage(pod), since, ctx)
}

// startingSince assesses a pod that starts since a time, with the startup limit.
func startingSince(reason, message string, since time.Time, ctx Context) Assessment {
	a := pending(ctx, since, startup, Unhealthy, reason, message)
	if a.Status == Unhealthy {
		a.Reason, a.Phase = "StartingTooLong", Overdue
	}
	return a
}

// startTime returns when a pod got its node; its creation time if that is unknown.
func startTime(pod *corev1.Pod) time.Time {
	start := pod.CreationTimestamp.Time
	if t := podCondition(pod, corev1.PodScheduled).LastTransitionTime; t.After(start) {
		start = t.Time
	}
	if t := pod.Status.StartTime; t != nil && t.After(start) {
		start = t.Time
	}
	return start
}

// startingMessage describes the step at which a starting pod is.
func startingMessage(pod *corev1.Pod) string {
	const starting = "the pod is starting"
	for _, c := range containersOf(pod) {
		if c.init && !c.sidecar && c.State.Running != nil {
			return starting + ": " + c.name() + " runs"
		}
		if c.sidecar && c.State.Running != nil && c.Started != nil && !*c.Started {
			return starting + ": " + c.name() + " has not started yet"
		}
	}
	if len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses) == 0 {
		if podCondition(pod, corev1.PodScheduled).Status == corev1.ConditionTrue {
			return "waiting for the kubelet to start the pod"
		}
		return starting + ": it has no node yet"
	}
	return starting
}

// runsSomething reports whether a container runs or has run.
func runsSomething(pod *corev1.Pod) bool {
	for _, c := range containersOf(pod) {
		if c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// podReadiness assesses a running pod without a failed container.
//
// Source: conditions Ready and ContainersReady, status.containerStatuses[].{ready,started}.
func podReadiness(pod *corev1.Pod, ctx Context) Assessment {
	ready := podCondition(pod, corev1.PodReady)
	if ready.Status == corev1.ConditionTrue {
		a := podResize(pod)
		a.Phase = Serving
		return a
	}
	allReady := len(pod.Status.ContainerStatuses) > 0
	for _, c := range containersOf(pod) {
		if c.init && !c.sidecar {
			continue
		}
		if c.State.Running != nil && !c.Ready {
			return notReady(pod, c, ready, ctx)
		}
		allReady = allReady && (c.Ready || c.hasCompleted())
	}
	if !allReady || ready.Status == "" {
		return podStarting(pod, ctx)
	}
	return notReadyByCondition(pod, ready, ctx)
}

// podResize assesses a ready pod whose resources may be about to change.
//
// Source: KEP-1287, conditions PodResizePending, reasons Deferred and Infeasible, and PodResizeInProgress, reason Error.
func podResize(pod *corev1.Pod) Assessment {
	a := healthy
	pending, running := podCondition(pod, corev1.PodResizePending), podCondition(pod, corev1.PodResizeInProgress)
	switch {
	case pending.Status == corev1.ConditionTrue && pending.Reason == corev1.PodReasonInfeasible:
		a = verdict(Unhealthy, "ResizeInfeasible", "the pod cannot be resized on its node"+colon(sanitizeMessage(pod, pending.Message)))
		a.Since = pending.LastTransitionTime.Time
	case running.Status == corev1.ConditionTrue && running.Reason == corev1.PodReasonError:
		a = verdict(Unhealthy, "ResizeFailed", "the pod cannot be resized"+colon(sanitizeMessage(pod, running.Message)))
		a.Since = running.LastTransitionTime.Time
	case pending.Status == corev1.ConditionTrue:
		a = verdict(Reconciling, "ResizeDeferred", "the pod waits for capacity on its node to be resized"+colon(sanitizeMessage(pod, pending.Message)))
		a.Since = pending.LastTransitionTime.Time
	case running.Status == corev1.ConditionTrue:
		a = verdict(Reconciling, "Resizing", "the pod is being resized")
		a.Since = running.LastTransitionTime.Time
	}
	return a
}

// notReady assesses a pod with a running container that is not ready: it starts, or it was ready before.
func notReady(pod *corev1.Pod, c containerState, ready corev1.PodCondition, ctx Context) Assessment {
	if c.starting(ready) {
		message := c.name() + " is not ready yet"
		if c.Started != nil && !*c.Started {
			message = c.name() + " has not started yet"
		}
		words := probeWords(pod, ctx, "Startup", "Readiness")
		return startingSince("Starting", message+colon(words), c.State.Running.StartedAt.Time, ctx)
	}
	a := verdict(Unhealthy, "NotReady", c.name()+" runs and is not ready"+colon(probeWords(pod, ctx, "Readiness")))
	a.Since = ready.LastTransitionTime.Time
	return a
}

// notReadyByCondition assesses a pod that is not ready although its containers are. Either a readiness gate is closed, or
// its node does not report; the condition has no reason in that case.
//
// Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-readiness-gate, and the node lifecycle
// controller, which sets Ready alone to False.
func notReadyByCondition(pod *corev1.Pod, ready corev1.PodCondition, ctx Context) Assessment {
	switch {
	case ready.Reason == "" || ready.Reason == nodeNotReady || ready.Status == corev1.ConditionUnknown:
		return nodeUnreachable(nodeNotReady, ready.LastTransitionTime)
	case ready.Reason != "ReadinessGatesNotReady":
		a := verdict(Unhealthy, camelReason(ready.Reason, "NotReady"), "the pod is not ready"+colon(sanitizeMessage(pod, ready.Message)))
		a.Since = ready.LastTransitionTime.Time
		return a
	}
	message := "the pod waits for a readiness gate" + colon(sanitizeMessage(pod, ready.Message))
	containers := podCondition(pod, corev1.ContainersReady).LastTransitionTime
	if ready.LastTransitionTime.After(containers.Time) { // it was ready
		a := verdict(Unhealthy, ready.Reason, message)
		a.Since = ready.LastTransitionTime.Time
		return a
	}
	return startingSince(ready.Reason, message, containers.Time, ctx)
}

const nodeNotReady = "NodeNotReady"

func nodeUnreachable(reason string, since metav1.Time) Assessment {
	a := verdict(Unhealthy, reason, "the pod is not ready: its node does not report the status of the pod")
	a.Since = since.Time
	return a
}

func podCondition(pod *corev1.Pod, name corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return corev1.PodCondition{}
}

// probeWords returns the text of the latest Warning if it is about one of some probes.
//
// Source: the kubelet's Event Unhealthy, "Readiness probe failed: …".
func probeWords(pod *corev1.Pod, ctx Context, probes ...string) string {
	if ctx.Warning.Reason != "Unhealthy" {
		return ""
	}
	for _, probe := range probes {
		if strings.HasPrefix(ctx.Warning.Message, probe+" probe ") {
			return sanitizeMessage(pod, ctx.Warning.Message)
		}
	}
	return ""
}
