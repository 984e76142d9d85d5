package observe

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Status is the verdict on a workload. In a control plane of version v0 it is a word.
type Status struct {
	Workload target.Instance
	// Status is Healthy, Reconciling, Unhealthy, Down or Unknown.
	Status string

	// Round is not zero if the control plane takes what follows. It is another whenever all has to be told anew.
	Round int64
	// Reason is a word, Cause a sentence, both empty if there is nothing to say.
	Reason, Cause string
	// Since is when the status became what it is; zero if that is not known.
	Since time.Time
	DeliveryCounts
}

// DeliveryCounts counts the reports of a workload that the control plane has not got: those that wait for longer than is usual,
// those that it refused for good, and Events that were lost.
type DeliveryCounts struct{ Pending, Rejected, Dropped int64 }

// Key returns the same for every status of a workload.
func (s Status) Key() Key { return Key("status/" + instanceKey(s.Workload)) }

// OrderingKey returns the workload's own lane.
func (s Status) OrderingKey() OrderingKey { return OrderingKey(s.Key()) }

// Version is the word itself where the control plane takes no more: only a change of it is news. Else it is the word with
// a digest of the rest.
func (s Status) Version() string {
	if s.Round == 0 {
		return s.Status
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d\n%s\n%s\n%d\n%+v", s.Round, s.Reason, s.Cause, s.Since.UnixNano(), s.DeliveryCounts)
	return fmt.Sprintf("%s/%x", s.Status, h.Sum64())
}

// Instance returns the workload.
func (s Status) Instance() target.Instance { return s.Workload }

func (s Status) String() string { return "status of " + s.Workload.String() }
