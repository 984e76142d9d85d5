package assess

import (
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// healthStarts remembers when the agent first saw the present health of each listed resource. The cluster does not record the start
// of each health, such as that of an absent object. It is safe for concurrent use.
type healthStarts struct {
	mu        sync.Mutex
	workloads map[string]workloadStarts
}

type workloadStarts struct {
	readAt    time.Time // when the reading of the statuses began
	resources map[target.Ref]healthStart
}

type healthStart struct {
	health  string
	at      time.Time
	guessed bool // the cluster did not record it
}

// set sets the starts of the statuses of a workload. A health that is unchanged has the earlier start. A new one has the start that the
// cluster records, or else readAt in seconds, the resolution of statuses. That gives way to an earlier one that the cluster records.
// Statuses that were read before those of another reader change nothing.
func (h *healthStarts) set(workload string, statuses []target.ResourceStatus, readAt time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, starts := h.workloads[workload], make(map[target.Ref]healthStart, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		start := before.resources[s.Ref]
		if start.health != s.Health {
			start = healthStart{s.Health, readAt.Truncate(time.Second), true}
		}
		if start.guessed && !s.Since.IsZero() && s.Since.Before(start.at) {
			start.at, start.guessed = s.Since, false
		}
		starts[s.Ref], s.Since = start, start.at
	}
	if !readAt.Before(before.readAt) {
		h.workloads[workload] = workloadStarts{readAt, starts}
	}
}

func (h *healthStarts) forget(workload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.workloads, workload)
}
