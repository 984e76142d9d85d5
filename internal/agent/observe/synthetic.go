package observe

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// The reasons of synthetic Events: the agent makes those that Kubernetes does not write.
const (
	// ReasonOOMKilled is also the kubelet's reason in a container's status.
	ReasonOOMKilled = "OOMKilled"
	// ReasonContainerRestarted means that a container terminated for another reason and is restarted.
	ReasonContainerRestarted = "ContainerRestarted"
	// ReasonWorkload is the prefix of the reasons of health transitions: WorkloadHealthy, WorkloadDown …
	ReasonWorkload = "Workload"
)

// ContainerTermination is a termination of a container, for which Kubernetes writes no Event. Restart is the restart count
// of the container that follows it.
type ContainerTermination struct {
	Container  string
	Restart    int32
	Terminated *corev1.ContainerStateTerminated
	// Time is never zero.
	Time time.Time
}

// ContainerTerminations returns the terminations in a pod's status, of containers of all sorts: that of the previous run,
// and that of the current run if it was OOM-killed. A current run that terminated in another way may not be followed by a
// restart: an init container succeeds, and a deleted pod is stopped. Those of one container are in the order of time.
//
// Source: ContainerStatus.restartCount, state and lastState. While a kubelet waits to restart a container, lastState is
// the end of the latest run, and restartCount is still that of this run: see convertToAPIContainerStatuses in
// k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go.
func ContainerTerminations(pod *corev1.Pod) []ContainerTermination {
	var out []ContainerTermination
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			out = appendTerminations(out, pod, &statuses[i])
		}
	}
	return out
}

func appendTerminations(out []ContainerTermination, pod *corev1.Pod, c *corev1.ContainerStatus) []ContainerTermination {
	if last := c.LastTerminationState.Terminated; last != nil {
		if restart := restartAfter(c, last); restart > 0 {
			out = append(out, ContainerTermination{c.Name, restart, last, terminatedAt(pod, c, last)})
		}
	}
	if t := c.State.Terminated; t != nil && t.Reason == ReasonOOMKilled {
		out = append(out, ContainerTermination{c.Name, c.RestartCount + 1, t, terminatedAt(pod, c, t)})
	}
	return out
}

// restartAfter returns the number of the restart that follows the termination in a container's lastState. The cache keeps IDs only for
// containers that wait.
func restartAfter(c *corev1.ContainerStatus, last *corev1.ContainerStateTerminated) int32 {
	switch {
	case c.State.Waiting == nil: // it runs or has terminated again
		return c.RestartCount
	case c.ContainerID != "" && last.ContainerID != "":
		if c.ContainerID == last.ContainerID {
			return c.RestartCount + 1
		}
		return c.RestartCount
	case c.State.Waiting.Reason == "CrashLoopBackOff":
		return c.RestartCount + 1
	}
	return c.RestartCount
}

// terminatedAt returns when a container terminated, or an earlier time if the kubelet does not know.
func terminatedAt(pod *corev1.Pod, c *corev1.ContainerStatus, t *corev1.ContainerStateTerminated) time.Time {
	times := []time.Time{t.FinishedAt.Time}
	if c.State.Running != nil {
		times = append(times, c.State.Running.StartedAt.Time)
	}
	if pod.Status.StartTime != nil {
		times = append(times, pod.Status.StartTime.Time)
	}
	for _, at := range append(times, pod.CreationTimestamp.Time) {
		if isKnown(at) {
			return at.UTC()
		}
	}
	return time.Unix(1, 0).UTC() // the API server sets creationTimestamp on everything it stores
}

// TerminationUID is the UID of the Event about a termination. All agents make the same one.
func TerminationUID(pod types.UID, container string, restart int32) types.UID {
	return types.UID(fmt.Sprintf("%s/%s/%d", pod, container, restart))
}

// NewTermination returns the Event about a termination.
func NewTermination(pod target.Identity, end ContainerTermination, attribution target.Attribution) Event {
	t := end.Terminated
	reason := ReasonContainerRestarted
	message := fmt.Sprintf("Pod %s: container %s ended with exit code %d (%s), restart %d",
		pod.Name, end.Container, t.ExitCode, cmp.Or(t.Reason, "Error"), end.Restart)
	if t.Reason == ReasonOOMKilled {
		reason = ReasonOOMKilled
		message = fmt.Sprintf("Pod %s: container %s ended with exit code %d (%s): it needed more memory than it may have",
			pod.Name, end.Container, t.ExitCode, t.Reason)
	}
	return syntheticEvent(Event{
		Workload:        attribution.Instance,
		ResourceID:      attribution.Resource.ID,
		UID:             TerminationUID(pod.UID, end.Container, end.Restart),
		Involved:        pod.Ref,
		InvolvedUID:     pod.UID,
		InvolvedVersion: "v1",
		Type:            corev1.EventTypeWarning,
		Reason:          reason,
		Message:         message,
		Time:            end.Time,
	})
}

// TransitionUID is the UID of the Event about a health transition. All agents make the same one.
func TransitionUID(c target.HealthTransition) types.UID {
	return types.UID(fmt.Sprintf("%s/%s/%s", c.UID, c.At.UTC().Format(time.RFC3339), c.To))
}

// NewTransition returns the Event about a health transition of a ThreeportWorkload.
func NewTransition(workload target.Ref, instance target.Instance, c target.HealthTransition) Event {
	message := "Workload " + workload.Name + " is " + c.To
	if c.From != "" {
		message += ", it was " + c.From
	}
	if c.Message != "" {
		message += ": " + c.Message
	} else if c.Reason != "" {
		message += ": " + c.Reason
	}
	eventType := corev1.EventTypeNormal
	if health.Status(c.To).IsFault() {
		eventType = corev1.EventTypeWarning
	}
	return syntheticEvent(Event{
		Workload:    instance,
		UID:         TransitionUID(c),
		Involved:    workload,
		InvolvedUID: c.UID,
		Type:        eventType,
		Reason:      ReasonWorkload + c.To,
		Message:     message,
		Time:        c.At.UTC(),
	})
}

// syntheticEvent completes an Event that the agent makes. Its version is a digest of its contents. It counts as preexisting,
// because another agent, or an earlier process, may have reported the same Event.
func syntheticEvent(ev Event) Event {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%s\n%d", ev.Type, ev.Reason, ev.Message, ev.Time.UnixNano())
	ev.ResourceVersion = strconv.FormatUint(h.Sum64(), 36)
	ev.MayHaveRow, ev.Synthetic = true, true
	return ev
}
