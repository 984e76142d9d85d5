package threeport

import "time"

// PodFacts says where a Pod runs, and what its containers do. It has no values of the Pod's environment, and no messages.
type PodFacts struct {
	// Node is the name of the Pod's node; empty before the Pod is scheduled.
	Node string `json:"node,omitempty" maxLength:"253"`
	// Containers are the init containers, the others and the ephemeral ones, each in the order of the Pod's status. It is empty
	// until the kubelet has reported them. A report set has at most 40,000 containers in all its trees.
	Containers []ContainerFacts `json:"containers,omitempty" maxItems:"64"`
}

// ContainerFacts is the state of one container.
type ContainerFacts struct {
	Name string `json:"name" maxLength:"253"`
	// Type is init, sidecar or ephemeral; empty for an ordinary container. A sidecar is an init container that keeps running.
	Type string `json:"type,omitempty" enum:"init,sidecar,ephemeral"`
	// Image is the image of the Pod's spec.
	Image string `json:"image,omitempty" maxLength:"1024"`
	// State is Waiting, Running or Terminated.
	State string `json:"state" enum:"Waiting,Running,Terminated"`
	// Reason is a word for the state, such as CrashLoopBackOff.
	Reason string `json:"reason,omitempty" maxLength:"256"`
	// Ready is true if the container passes its readiness probe.
	Ready bool `json:"ready,omitempty"`
	// Restarts counts the restarts of the container.
	Restarts int64 `json:"restarts,omitempty" minimum:"0"`
	// LastExit is the latest termination; none if the container never terminated.
	LastExit *ContainerExit `json:"lastExit,omitempty"`
}

// ContainerExit is the termination of a container.
type ContainerExit struct {
	// Code is the exit code: 128 plus the number of the signal that killed the container.
	Code int64 `json:"code"`
	// Reason is a word such as OOMKilled, Error or Completed.
	Reason string `json:"reason,omitempty" maxLength:"256"`
	// Time is when the container terminated; none if that is not known.
	Time *time.Time `json:"time,omitempty"`
}

// The states and types of a container.
var (
	ContainerStates = []string{"Waiting", "Running", "Terminated"}
	ContainerTypes  = []string{"", "init", "sidecar", "ephemeral"}
)

const (
	// MaxContainers bounds the containers of a [PodFacts].
	MaxContainers = 64
	// MaxTreeContainers bounds the containers of a [TreeReport], and of all trees in a [ReportSet].
	MaxTreeContainers = 40_000

	maxImage = 1024
)

// clean cuts the facts to the server's limits, and rounds their times.
func (f *PodFacts) clean() {
	f.Containers = f.Containers[:min(len(f.Containers), MaxContainers)]
	for i := range f.Containers {
		c := &f.Containers[i]
		c.Image, c.Reason = cut(c.Image, maxImage), cut(c.Reason, maxWord)
		if c.LastExit == nil {
			continue
		}
		c.LastExit.Reason = cut(c.LastExit.Reason, maxWord)
		c.LastExit.Time = cleanOptionalTime(c.LastExit.Time)
	}
}
