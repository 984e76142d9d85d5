package observe

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodFacts is where a Pod runs, and the states of its containers. Its values change only with the Pod and its containers, so that a
// heartbeat of the kubelet causes no report. It lacks termination messages, which may contain confidential values.
type PodFacts struct {
	Node string
	// Containers are the init containers, the others and the ephemeral ones, each in the order of the Pod's status.
	Containers []ContainerFacts
}

// ContainerFacts is the state of a container.
type ContainerFacts struct {
	Name, Image string
	// Type is init, sidecar or ephemeral; empty for an ordinary container.
	Type string
	// State is Waiting, Running or Terminated, and Reason a word for it.
	State, Reason string
	Ready         bool
	Restarts      int32
	// LastExit is the latest termination; zero if the container never terminated.
	LastExit ContainerExit
}

// ContainerExit is the termination of a container.
type ContainerExit struct {
	Known  bool
	Code   int32
	Reason string
	At     time.Time // zero if it is not known
}

// NewPodFacts returns the facts of a Pod.
func NewPodFacts(pod *corev1.Pod) *PodFacts {
	status := &pod.Status
	facts := &PodFacts{
		Node:       pod.Spec.NodeName,
		Containers: make([]ContainerFacts, 0, len(status.InitContainerStatuses)+len(status.ContainerStatuses)+len(status.EphemeralContainerStatuses)),
	}
	for i := range status.InitContainerStatuses {
		c := &status.InitContainerStatuses[i]
		kind := "init"
		if isSidecar(pod, c.Name) {
			kind = "sidecar"
		}
		facts.add(c, kind)
	}
	for i := range status.ContainerStatuses {
		facts.add(&status.ContainerStatuses[i], "")
	}
	for i := range status.EphemeralContainerStatuses {
		facts.add(&status.EphemeralContainerStatuses[i], "ephemeral")
	}
	return facts
}

// isSidecar reports whether an init container keeps running (KEP-753).
func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

func (f *PodFacts) add(c *corev1.ContainerStatus, kind string) {
	facts := ContainerFacts{Name: c.Name, Image: c.Image, Type: kind, Ready: c.Ready, Restarts: c.RestartCount}
	switch state := c.State; {
	case state.Running != nil:
		facts.State = "Running"
	case state.Terminated != nil:
		facts.State, facts.Reason = "Terminated", state.Terminated.Reason
	default: // the API says that a container without a state is waiting
		facts.State = "Waiting"
		if state.Waiting != nil {
			facts.Reason = state.Waiting.Reason
		}
	}
	facts.LastExit = lastExit(c)
	f.Containers = append(f.Containers, facts)
}

func lastExit(c *corev1.ContainerStatus) ContainerExit {
	last := c.State.Terminated
	if last == nil {
		last = c.LastTerminationState.Terminated
	}
	if last == nil {
		return ContainerExit{}
	}
	exit := ContainerExit{Known: true, Code: last.ExitCode, Reason: last.Reason}
	if at := last.FinishedAt.Time; isKnown(at) {
		exit.At = at.UTC()
	}
	return exit
}

// Equal reports whether two facts are the same. Nil is for a Pod without facts.
func (f *PodFacts) Equal(other *PodFacts) bool {
	if f == nil || other == nil {
		return f == other
	}
	return f.Node == other.Node && slices.Equal(f.Containers, other.Containers)
}
