// Package observe has the reports that the reporter makes: an [Operation] of an object, an [Event] of the cluster, the
// [Status] of a workload, and the [Tree] of its objects. [Trim] decides which parts of an object may leave the cluster. The
// package is pure: no I/O, no clock, no goroutine. Reports are values; their slices and objects must not be changed.
package observe

import (
	"fmt"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Key identifies the subject of a report. A later report replaces an earlier one with the same key.
type Key string

// OrderingKey groups the reports of different keys about one subject. They are delivered one after the other, in the order
// in which their keys came up. A resource that is deleted and created again has two keys and one ordering key.
type OrderingKey string

// Report is sent to the control plane: an [Operation], [Event], [Status] or [Tree].
type Report interface {
	Key() Key
	OrderingKey() OrderingKey
	// Version differs between any two reports of a key with different contents.
	Version() string
	// Instance is the workload that the report is about.
	Instance() target.Instance
	// String names the report for logs, without contents of an object.
	String() string
}

func instanceKey(i target.Instance) string { return fmt.Sprintf("%s/%d", i.Type, i.ID) }

// IsSnapshot reports whether a report describes a workload as a whole: a [Status] or a [Tree]. A newer one replaces it.
func IsSnapshot(r Report) bool {
	switch r.(type) {
	case Status, Tree:
		return true
	}
	return false
}
