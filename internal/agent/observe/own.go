package observe

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// The reasons of Events that the agent makes, because Kubernetes writes none.
const (
	// ReasonOOMKilled is the kubelet's word in a container's status.
	ReasonOOMKilled = "OOMKilled"
	// ReasonContainerRestarted means that a container ended, in whatever other way, and was started again or will be.
	ReasonContainerRestarted = "ContainerRestarted"
	// ReasonWorkload begins the reasons of changes of a workload's status: WorkloadHealthy, WorkloadDown …
	ReasonWorkload = "Workload"
)

// ContainerTermination is an end of a container of which Kubernetes writes no Event. It has a number, which is the restart count of the
// container that follows it, or would.
type ContainerTermination struct {
	Container  string
	Restart    int32
	Terminated *corev1.ContainerStateTerminated
	// Time is when it ended; never zero.
	Time time.Time
}

// ContainerTerminations returns what a pod's status tells of the ends of its containers, of whatever sort: that of the run before the
// present one, and that of the present one if the kernel killed it for its memory. Of a container the later comes last.
// That another way to end is followed by a restart is not known before there is one: an init container just succeeds, and
// a pod that is deleted is stopped.
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
			out = appendEnds(out, pod, &statuses[i])
		}
	}
	return out
}

func appendEnds(out []ContainerTermination, pod *corev1.Pod, c *corev1.ContainerStatus) []ContainerTermination {
	if last := c.LastTerminationState.Terminated; last != nil {
		if restart := restartAfter(c, last); restart > 0 {
			out = append(out, ContainerTermination{c.Name, restart, last, endTime(pod, c, last)})
		}
	}
	if t := c.State.Terminated; t != nil && t.Reason == ReasonOOMKilled {
		out = append(out, ContainerTermination{c.Name, c.RestartCount + 1, t, endTime(pod, c, t)})
	}
	return out
}

// restartAfter returns the number of the restart that follows the end in a container's lastState.
func restartAfter(c *corev1.ContainerStatus, last *corev1.ContainerStateTerminated) int32 {
	switch {
	case c.State.Waiting == nil: // it runs, or has ended, once more
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

// endTime returns when a container ended. A kubelet that lost it does not know.
func endTime(pod *corev1.Pod, c *corev1.ContainerStatus, t *corev1.ContainerStateTerminated) time.Time {
	times := []time.Time{t.FinishedAt.Time}
	if c.State.Running != nil {
		times = append(times, c.State.Running.StartedAt.Time)
	}
	if pod.Status.StartTime != nil {
		times = append(times, pod.Status.StartTime.Time)
	}
	for _, at := range append(times, pod.CreationTimestamp.Time) {
		if at.Unix() > 0 { // a container that never started has its epoch
			return at.UTC()
		}
	}
	return time.Unix(1, 0).UTC() // the API server sets creationTimestamp on everything it stores
}

// TerminationUID is the UID of the Event about an end: the same whoever tells of it.
func TerminationUID(pod types.UID, container string, restart int32) types.UID {
	return types.UID(fmt.Sprintf("%s/%s/%d", pod, container, restart))
}

// ParseTerminationUID is the reverse of [TerminationUID].
func ParseTerminationUID(uid types.UID) (pod types.UID, container string, restart int32, ok bool) {
	parts := strings.Split(string(uid), "/")
	if len(parts) != 3 {
		return "", "", 0, false
	}
	n, err := strconv.ParseInt(parts[2], 10, 32)
	return types.UID(parts[0]), parts[1], int32(n), err == nil
}

// NewTermination returns the report of an end of a pod's container.
func NewTermination(pod target.Identity, end ContainerTermination, claim target.Attribution) Event {
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
		Workload:        claim.Instance,
		ResourceID:      claim.Resource.ID,
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

// TransitionUID is the UID of the Event about a change of a workload's status: the same whoever tells of it.
func TransitionUID(c target.HealthTransition) types.UID {
	return types.UID(fmt.Sprintf("%s/%s/%s", c.UID, c.At.UTC().Format(time.RFC3339), c.To))
}

// NewTransition returns the report of a change of the status of a workload, which a ThreeportWorkload declares.
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
	switch health.Status(c.To) {
	case health.Unhealthy, health.Down:
		eventType = corev1.EventTypeWarning
	case health.Healthy, health.Reconciling, health.Unknown:
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

// syntheticEvent completes an Event that the agent makes. Its version is what it says; and another agent, or one that has lost its
// memory, makes the same, so that whoever sends it has to look first.
func syntheticEvent(ev Event) Event {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%s\n%d", ev.Type, ev.Reason, ev.Message, ev.Time.UnixNano())
	ev.ResourceVersion = strconv.FormatUint(h.Sum64(), 36)
	ev.Preexisting = true
	return ev
}
