package observe

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
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
	// CauseSince is when Reason became what it is, if a ThreeportWorkload records that; else zero.
	CauseSince time.Time `json:",omitzero"`
	// EndsWatch is true for the last status of an instance that ThreeportWorkloads no longer declare.
	EndsWatch bool `json:",omitempty"`
	// Trace is that of a sampled report; nil for others.
	Trace *Trace `json:"-"`
}

// ReasonNotWatched is the reason of the last status of an instance.
const ReasonNotWatched = "NotWatched"

// NewWatchEnd returns the last status of an instance, which the agent no longer watches.
func NewWatchEnd(instance target.Instance, cause string, at time.Time) Status {
	return Status{
		Workload: instance, Status: string(health.Unknown), Reason: ReasonNotWatched, Cause: cause, Since: at.UTC(), EndsWatch: true,
	}
}

// EndsWatch reports whether a report is the last status of an instance.
func EndsWatch(r Report) bool {
	s, ok := r.(Status)
	return ok && s.EndsWatch
}

const statusPrefix = "status/"

// StatusInstance returns the instance whose status has the key; false if it is the key of another report.
func (k Key) StatusInstance() (target.Instance, bool) {
	name, ok := strings.CutPrefix(string(k), statusPrefix)
	kind, number, _ := strings.Cut(name, "/")
	id, err := strconv.ParseInt(number, 10, 64)
	return target.Instance{Type: target.Type(kind), ID: id}, ok && err == nil
}

// Key returns the same for every status of a workload.
func (s Status) Key() Key { return Key(statusPrefix + instanceKey(s.Workload)) }

// OrderingKey is the key: statuses of different workloads are independent.
func (s Status) OrderingKey() OrderingKey { return OrderingKey(s.Key()) }

// Version is the word, followed by a digest of the other fields if one is set.
func (s Status) Version() string {
	if s.Reason == "" && s.Cause == "" && s.Since.IsZero() {
		return s.Status
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%s\n%d", s.Reason, s.Cause, s.Since.UnixNano())
	if !s.CauseSince.IsZero() {
		_, _ = fmt.Fprintf(h, "\n%d", s.CauseSince.UnixNano())
	}
	return fmt.Sprintf("%s/%x", s.Status, h.Sum64())
}

// Instance returns the workload.
func (s Status) Instance() target.Instance { return s.Workload }

func (s Status) String() string { return "status of " + s.Workload.String() }
