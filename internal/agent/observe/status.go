package observe

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Status is the health of a workload.
type Status struct {
	Workload target.Instance
	// Status is Healthy, Reconciling, Unhealthy, Down or Unknown.
	Status string
	// Reason is a word, Cause a sentence. Both may be empty.
	Reason, Cause string
	// Since is when Status last changed; zero if that is not known.
	Since time.Time
}

// Key returns the same for every status of a workload.
func (s Status) Key() Key { return Key("status/" + instanceKey(s.Workload)) }

// OrderingKey is the key: statuses of different workloads are independent.
func (s Status) OrderingKey() OrderingKey { return OrderingKey(s.Key()) }

// Version is the word, followed by a digest of the other fields if one is set.
func (s Status) Version() string {
	if s.Reason == "" && s.Cause == "" && s.Since.IsZero() {
		return s.Status
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%d", s.Reason, s.Cause, s.Since.UnixNano())
	return fmt.Sprintf("%s/%x", s.Status, h.Sum64())
}

// Instance returns the workload.
func (s Status) Instance() target.Instance { return s.Workload }

func (s Status) String() string { return "status of " + s.Workload.String() }
