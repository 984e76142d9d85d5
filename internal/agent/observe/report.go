// Package observe turns what the watch sees into reports: an object into an [Operation], an Event of the
// cluster into an [Event], the verdict on a workload into a [Status], and all its objects into a [Tree]. It
// decides what of an object may leave the cluster ([Trim]). Everything here is pure: no I/O, no clock, no goroutine.
package observe

import (
	"fmt"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Key identifies what a report is about. Of two reports with one key the later one replaces the earlier.
type Key string

// OrderingKey orders reports: those of one lane are delivered one after the other, in the order in which their
// keys came up. A resource that is deleted and created again is two keys in one lane.
type OrderingKey string

// Report is something that the control plane is to be told: an [Operation], [Event], [Status] or [Tree].
type Report interface {
	Key() Key
	OrderingKey() OrderingKey
	// Version differs whenever there is something new to tell about the key.
	Version() string
	// Instance is the workload that the report is about.
	Instance() target.Instance
	// String names the report for a person, without anything that an object contains.
	String() string
}

func instanceKey(i target.Instance) string { return fmt.Sprintf("%s/%d", i.Type, i.ID) }
