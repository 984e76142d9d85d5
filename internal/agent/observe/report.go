// Package observe has the reports that the reporter makes: an [Operation] of an object, an [Event] of the cluster, the
// [Status] of a workload, and the [Tree] of its objects. [Trim] and the redaction rules decide which parts of an object may
// leave the cluster. The package is pure: no I/O, no goroutine, and no clock except that of spans. Reports are values; their slices and
// objects must not be changed.
package observe

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Key identifies the subject of a report. A later report replaces an earlier one with the same key.
type Key string

// OrderingKey orders reports of different keys: those with one ordering key are delivered one after the other, in the order
// in which their keys came up. A resource that is deleted and created again has two keys and one ordering key.
type OrderingKey string

// Subject groups the keys that are made, and forgotten, together: those of an ordering key, those of one Event, or all
// synthetic Events about one object.
type Subject string

// EventSubject is the subject of an Event of the cluster.
func EventSubject(uid types.UID) Subject { return Subject(EventKey(uid)) }

// EventUID returns the UID of the cluster's Event whose subject it is; false if it is another subject.
func (s Subject) EventUID() (types.UID, bool) { return Key(s).EventUID() }

// SyntheticSubject is the subject of the synthetic Events about an object.
func SyntheticSubject(involved types.UID) Subject { return Subject("synthetic/" + involved) }

// SubjectOf returns the subject of a report.
func SubjectOf(r Report) Subject {
	if ev, ok := r.(Event); ok {
		switch {
		case ev.Synthetic:
			return SyntheticSubject(ev.InvolvedUID)
		case ev.Source != "":
			return EventSubject(ev.Source)
		}
	}
	return Subject(r.OrderingKey())
}

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

func instanceKey(i target.Instance) string { return string(i.Type) + "/" + strconv.FormatInt(i.ID, 10) }

// IsSnapshot reports whether a report describes a workload as a whole: a [Status] or a [Tree]. A newer one replaces it.
func IsSnapshot(r Report) bool {
	switch r.(type) {
	case Status, Tree:
		return true
	}
	return false
}
