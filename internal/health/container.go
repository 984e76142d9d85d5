package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// crashRecovery is how long a container has to run after a crash until it counts as recovered. The kubelet resets its
// back-off then.
//
// Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restarts
const crashRecovery = 10 * time.Minute

// containerState is the status of a container with its kind and its restart policy.
type containerState struct {
	*corev1.ContainerStatus
	init, sidecar bool
	policy        corev1.RestartPolicy // of the container; only a sidecar among init containers has Always
}

// containersOf returns the containers that a pod needs, in the order in which they start. Ephemeral containers are left
// out, because their failure does not harm the pod.
func containersOf(pod *corev1.Pod) []containerState {
	out := make([]containerState, 0, len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses))
	for i := range pod.Status.InitContainerStatuses {
		c := containerState{ContainerStatus: &pod.Status.InitContainerStatuses[i], init: true, policy: corev1.RestartPolicyOnFailure}
		own := ownPolicy(pod.Spec.InitContainers, c.Name)
		switch {
		case own == corev1.RestartPolicyAlways:
			c.sidecar, c.policy = true, own
		case own != "":
			c.policy = own
		case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			c.policy = corev1.RestartPolicyNever
		}
		out = append(out, c)
	}
	for i := range pod.Status.ContainerStatuses {
		c := containerState{ContainerStatus: &pod.Status.ContainerStatuses[i], policy: corev1.RestartPolicyAlways}
		if own := ownPolicy(pod.Spec.Containers, c.Name); own != "" {
			c.policy = own
		} else if pod.Spec.RestartPolicy != "" {
			c.policy = pod.Spec.RestartPolicy
		}
		out = append(out, c)
	}
	return out
}

// ownPolicy returns the restart policy in the spec of a container; empty if it has none.
//
// Source: spec.initContainers[].restartPolicy (KEP-753), spec.containers[].restartPolicy (KEP-5307).
func ownPolicy(containers []corev1.Container, name string) corev1.RestartPolicy {
	for i := range containers {
		if containers[i].Name == name && containers[i].RestartPolicy != nil {
			return corev1.RestartPolicy(*containers[i].RestartPolicy)
		}
	}
	return ""
}

// name returns the name of the container in a sentence.
func (c containerState) name() string {
	switch {
	case c.sidecar:
		return "sidecar " + c.Name
	case c.init:
		return "init container " + c.Name
	}
	return "container " + c.Name
}

// failedWith reports whether a termination is a failure of the container.
func (c containerState) failedWith(t *corev1.ContainerStateTerminated) bool {
	return t != nil && (t.ExitCode != 0 || c.policy == corev1.RestartPolicyAlways)
}

// hasCompleted reports whether the container has ended without a failure.
func (c containerState) hasCompleted() bool {
	return c.State.Terminated != nil && !c.failedWith(c.State.Terminated)
}

// starting reports whether a running container has not been ready since it started: its startup probe has not passed, or
// the pod was unready before.
func (c containerState) starting(ready corev1.PodCondition) bool {
	if c.Started != nil && !*c.Started {
		return true
	}
	since, started := ready.LastTransitionTime, c.State.Running.StartedAt
	return ready.Status == corev1.ConditionFalse && c.RestartCount == 0 && !since.IsZero() && !started.Before(&since)
}

// containersFail assesses a pod by its worst container, the first of equals; false if none fails.
func containersFail(pod *corev1.Pod, ctx Context) (Assessment, bool) {
	var worst Assessment
	found := false
	for _, c := range containersOf(pod) {
		if a, failing := c.assess(pod, ctx); failing && (!found || worse(a.Status, worst.Status)) {
			worst, found = a, true
		}
	}
	return worst, found
}

// assess assesses a container; false if it does not fail.
//
// Source: status.containerStatuses[].{state,lastState,restartCount}.
func (c containerState) assess(pod *corev1.Pod, ctx Context) (Assessment, bool) {
	switch {
	case c.State.Waiting != nil:
		return c.assessWaiting(pod, ctx)
	case c.State.Terminated != nil:
		if c.failedWith(c.State.Terminated) {
			return c.endedContainer(pod, ctx), true
		}
	case c.State.Running != nil:
		return c.assessRunning(pod, ctx)
	}
	return Assessment{}, false
}

// assessWaiting assesses a container that waits. Any reason other than the two of a normal start is an error of the
// kubelet or of the runtime.
func (c containerState) assessWaiting(pod *corev1.Pod, ctx Context) (Assessment, bool) {
	waiting := c.State.Waiting
	var v Verdict
	phase := NotServing
	switch waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		if c.RestartCount == 0 || !c.failedWith(c.LastTerminationState.Terminated) {
			return Assessment{}, false
		}
		return c.crashing(pod, c.LastTerminationState.Terminated, ctx), true
	case "CrashLoopBackOff":
		return c.crashing(pod, c.LastTerminationState.Terminated, ctx), true
	case "ImagePullBackOff", "ErrImagePull":
		message := fmt.Sprintf("image %s cannot be pulled%s", c.image(), colon(pullFailure(waiting.Message)))
		v = Verdict{Down, "ImagePullBackOff", message}
	case "InvalidImageName":
		v = Verdict{Down, waiting.Reason, fmt.Sprintf("image %s has a name that is not valid", c.image())}
	case "ErrImageNeverPull":
		v = Verdict{Down, waiting.Reason, fmt.Sprintf("image %s is not on the node, and is never to be pulled", c.image())}
	case "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		v = Verdict{Down, waiting.Reason, fmt.Sprintf("image %s cannot be used%s", c.image(), colon(sanitizeMessage(pod, waiting.Message)))}
	case "RunContainerError":
		phase = Restarting
		v = Verdict{Down, waiting.Reason, c.name() + " cannot be started" + colon(sanitizeMessage(pod, waiting.Message))}
	case "CreateContainerConfigError", "CreateContainerError":
		v = Verdict{Down, waiting.Reason, c.name() + " cannot be made" + colon(sanitizeMessage(pod, waiting.Message))}
	default:
		v = Verdict{Down, camelReason(waiting.Reason, "ContainerWaiting"), c.name() + " does not start" + colon(sanitizeMessage(pod, waiting.Message))}
	}
	return Assessment{Verdict: v, Phase: phase, Since: notReadySince(pod)}, true
}

// image returns the name of the image, bounded for a message.
func (c containerState) image() string { return truncateMiddle(c.Image, maxName) }

// endedContainer assesses a container that has failed. The kubelet restarts it unless the policy is Never.
func (c containerState) endedContainer(pod *corev1.Pod, ctx Context) Assessment {
	t := c.State.Terminated
	if c.RestartCount > 0 && c.policy != corev1.RestartPolicyNever {
		return c.crashing(pod, t, ctx)
	}
	a := verdict(Down, camelReason(t.Reason, "Error"), c.name()+" ended: "+exitDescription(t))
	if c.policy == corev1.RestartPolicyNever && runsAny(pod) {
		a.Status = Unhealthy // the others go on
	}
	a.Phase, a.Since = Restarting, notReadySince(pod)
	return a
}

// crashing assesses a container that has failed and was restarted. The kubelet reports a back-off only part of the time. The
// verdict is the same between two attempts, so that it does not flap.
func (c containerState) crashing(pod *corev1.Pod, last *corev1.ContainerStateTerminated, ctx Context) Assessment {
	var message string
	switch {
	case last == nil:
		message = c.name() + " crashes repeatedly"
	case last.Reason == "StartError" || last.Reason == "ContainerCannotRun":
		message = c.name() + " cannot be started" + colon(sanitizeMessage(pod, last.Message))
	case last.ExitCode == 0:
		message = c.name() + " exits repeatedly but should keep running: " + exitDescription(last) +
			colon(probeWords(pod, ctx, "Liveness", "Startup"))
	default:
		message = c.name() + " crashes: " + exitDescription(last)
	}
	a := verdict(Down, "CrashLoopBackOff", message)
	a.Phase, a.Since = Restarting, notReadySince(pod)
	return a
}

// assessRunning assesses a running container. It fails if its latest failure is recent, and was not the first or was for
// lack of memory.
func (c containerState) assessRunning(pod *corev1.Pod, ctx Context) (Assessment, bool) {
	last := c.LastTerminationState.Terminated
	if !c.failedWith(last) || c.RestartCount < 2 && last.Reason != oomKilled {
		return Assessment{}, false
	}
	since := last.FinishedAt.Time
	if t := c.State.Running.StartedAt.Time; t.After(since) {
		since = t
	}
	if since.IsZero() || !ctx.Now.Before(since.Add(crashRecovery)) {
		return Assessment{}, false
	}
	a := verdict(Unhealthy, "Restarting", c.name()+" runs again, after it crashed repeatedly: "+exitDescription(last))
	switch {
	case last.Reason == oomKilled:
		a.Verdict = Verdict{Unhealthy, oomKilled, c.name() + " runs again, after it was OOM-killed: " + exitDescription(last)}
	case last.ExitCode == 0:
		a.Message = c.name() + " runs again, after it exited repeatedly although it should keep running: " + exitDescription(last) +
			colon(probeWords(pod, ctx, "Liveness", "Startup"))
	}
	if podCondition(pod, corev1.PodReady).Status == corev1.ConditionTrue {
		a.Phase = Serving
	}
	a.Since, a.Recheck = since, since.Add(crashRecovery)
	if t := notReadySince(pod); !t.IsZero() && t.Before(since) {
		a.Since = t // a crash loop has the same start while the container waits
	}
	return a, true
}

const oomKilled = "OOMKilled"

// exitDescription describes how a container ended.
func exitDescription(t *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("%s (exit code %d)", camelReason(t.Reason, "Error"), t.ExitCode)
}

// notReadySince returns since when a pod is not ready; zero if unknown.
func notReadySince(pod *corev1.Pod) time.Time {
	if c := podCondition(pod, corev1.PodReady); c.Status == corev1.ConditionFalse {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// pullFailures maps the errors of container runtimes to causes. The texts of an attempt and of the back-off after it
// differ, so a verdict that quoted them would flap.
var pullFailures = []struct{ part, cause string }{
	{"not found", "it does not exist"},
	{"manifest unknown", "it does not exist"},
	{"name unknown", "it does not exist"},
	{"repository does not exist", "it does not exist, or needs credentials"},
	{"toomanyrequests", "its registry limits requests"},
	{"too many requests", "its registry limits requests"},
	{"unauthorized", "its registry wants other credentials"},
	{"authentication required", "its registry wants other credentials"},
	{"authorization failed", "its registry wants other credentials"},
	{"denied", "its registry does not allow it"},
	{"forbidden", "its registry does not allow it"},
	{"no such host", "the name of its registry cannot be resolved"},
	{"connection refused", "its registry does not answer"},
	{"i/o timeout", "its registry does not answer"},
	{"deadline exceeded", "its registry does not answer in time"},
	{"x509", "the certificate of its registry is not trusted"},
	{"no match for platform", "it is not there for the node's platform"},
	{"no matching manifest", "it is not there for the node's platform"},
	{"no space left", "the node's disk is full"},
}

// pullFailure returns the cause of a failed pull; empty if the text of the runtime is unknown.
func pullFailure(message string) string {
	message = strings.ToLower(message)
	for _, t := range pullFailures {
		if strings.Contains(message, t.part) {
			return t.cause
		}
	}
	return ""
}

// crashLoop has the reasons of a container that crashes again and again: it waits and runs in turn.
var crashLoop = []string{"CrashLoopBackOff", "Restarting", oomKilled}

// IsSameCause reports whether two reasons of a verdict name one cause.
func IsSameCause(reason, before string) bool {
	return reason == before || slices.Contains(crashLoop, reason) && slices.Contains(crashLoop, before)
}
